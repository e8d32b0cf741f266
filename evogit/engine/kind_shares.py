"""Which agents wait so that what a run may spend goes to the kind of agents that gains most for it."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from evogit.agents.model_agent import worth
from evogit.breeding.model_credit import kind_merits
from evogit.config.run_settings import Settings
from evogit.history.context import RunContext

SIDE_BY_SIDE = 0.8
"""Share of what the best kind gains for its cost from which on another kind moves as well."""

LONGEST = 300.0
"""Seconds without a result of anybody after which who waits moves all the same: the others may wait for an endpoint."""


class KindShares:
    """Lets agents of the kinds that ask models move, or has them wait for what others bring.

    Where the run has a limit on dollars, tokens or proposals and agents of several such kinds, a kind waits while what
    it gains for its cost, as far as it could be by what is known, is less than half of what the best one gains. A kind
    that waits is doubted less and less, so that it is tried again now and then. Agents that ask no model never wait.
    """

    def __init__(self, context: RunContext, settings: Settings) -> None:
        self._context = context
        limits = settings.dollars, settings.tokens, settings.proposals
        asking = {str(replace(spec, count=1)) for spec in settings.population if spec.asks}
        self._kinds = sorted(asking) if len(asking) > 1 and any(limit is not None for limit in limits) else []
        self._patient = settings.deterministic
        self._results = -1
        self._since = 0.0

    def allow(self, agent: str) -> bool:
        """Whether an agent may begin a move now."""
        if not self._kinds:
            return True
        kind = self._context.history.past_kinds().get((self._context.engine, agent), "")
        if kind not in self._kinds or self._is_stuck():
            return True
        return worth(self._kinds, kind_merits(self._context.history))[kind] >= SIDE_BY_SIDE

    def _is_stuck(self) -> bool:
        """Whether there was no result for long; in a deterministic run time decides nothing."""
        now, results = asyncio.get_running_loop().time(), self._context.history.moves
        if results != self._results:
            self._results, self._since = results, now
        return not self._patient and now - self._since > LONGEST
