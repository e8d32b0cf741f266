"""The waits of agents before they ask a model: while others gain more for the money, and while it is too early."""

from __future__ import annotations

import asyncio
from math import ceil

from msgspec.structs import replace

from evogit.agents.model_agent import worth
from evogit.breeding.credit import kind_merits
from evogit.config.run_settings import Settings
from evogit.engine.evaluations import Evaluations
from evogit.engine.quota import Quota
from evogit.history.context import RunContext

SIDE_BY_SIDE = 0.8
"""Share of what the best kind gains for its cost from which on another kind moves as well."""

PATIENCE_S = 300.0
"""Time without any result after which those who wait move all the same: the others may wait for an endpoint."""

HEADROOM = 3.0
"""A factor on the average need, since calls and evaluations vary in duration."""

WEIGHT = 0.1
"""Weight of the latest move in the average."""


class KindShares:
    """Lets agents of the kinds that ask models move, or has them wait for what others bring.

    Where the run has a limit on what models are asked and agents of several such kinds, a kind waits while what it
    gains for its cost, as far as it could be by what is known, is less than `SIDE_BY_SIDE` of what the best one gains.
    Doubt about a kind that waits grows, so that it is tried again now and then. Agents that ask no model never
    wait.
    """

    def __init__(self, context: RunContext, settings: Settings) -> None:
        self._context = context
        limits = settings.ceilings.values()
        asking = {str(replace(spec, count=1)) for spec in settings.population if spec.asks}
        self._kinds = sorted(asking) if len(asking) > 1 and any(limit is not None for limit in limits) else []
        self._patient = settings.deterministic
        self._results = -1
        self._since = 0.0

    def allow(self, agent: str) -> bool:
        """Return whether an agent may begin a move now."""
        if not self._kinds:
            return True
        kind = self._context.history.past_kinds().get((self._context.engine, agent), "")
        if kind not in self._kinds or self._is_stuck():
            return True
        return worth(self._kinds, kind_merits(self._context.history))[kind] >= SIDE_BY_SIDE

    def _is_stuck(self) -> bool:
        """Return whether there was no result for long; in a deterministic run time decides nothing."""
        now, results = asyncio.get_running_loop().time(), self._context.history.moves
        if results != self._results:
            self._results, self._since = results, now
        return not self._patient and now - self._since > PATIENCE_S


class AskingAhead:
    """Lets agents that ask models begin, or has them wait while what they made would wait for its evaluation.

    A later call knows more. So that no place to evaluate is free for long, as many candidates are made, or wait, as
    evaluations end while one is made (Little's law: Little, 1961), three times over, and one for each place that is
    free. Agents that ask no model never wait, nor do others of the same run: they fill the places in any case.
    """

    def __init__(self, evaluations: Evaluations, quota: Quota, settings: Settings) -> None:
        self._evaluations = evaluations
        self._quota = quota
        self._applies = not settings.deterministic and all(spec.asks for spec in settings.population)
        self._ended_meanwhile: float | None = None

    def allow(self) -> bool:
        """Return whether an agent may begin a move now."""
        room = self._evaluations.room
        if not self._applies or room is None or self._ended_meanwhile is None:
            return True
        needed = max(1, ceil(HEADROOM * self._ended_meanwhile))
        return self._quota.thinking < needed + room

    def learn(self, ended: int) -> None:
        """Take in how many evaluations ended while a candidate was made."""
        before = self._ended_meanwhile
        self._ended_meanwhile = ended if before is None else before + WEIGHT * (ended - before)
