"""Plateaus: when a model is asked what to try instead, how long that counts, and which candidates came of it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from evogit.config.run_settings import CALLS
from evogit.history import History

CALLS_EACH = 20
"""Calls for each question for a tactic: 5 %."""

PLATEAU = 0.15
"""Share of a limit on proposals in which nothing got better, after which one is asked for."""

LEAST = 12
"""Moves that such a plateau has at least, and all of it where there is no limit; more than that have to be left."""

TRIAL = 16
"""Moves in which a tactic has to make something better than all that it made before; else it is dropped."""


class Tactics(Struct, frozen=True):
    """The tactics of a run, from its history alone."""

    history: History

    @property
    def in_force(self) -> str:
        """The entry of the latest tactic, as long as it brings something; empty where there is none."""
        known = self._known()
        if not known or not self.history.tactics[known[-1]].text:
            return ""
        return known[-1] if self._now() - self._news(known[-1]) < TRIAL else ""

    def is_due(self, agent: str) -> bool:
        """Whether it is the turn of an agent to look back: nothing has got better for long, and calls are left.

        At the end of a run there are too few left to make something of what it would say.
        """
        history, known = self.history, self._known()
        best = history.best
        if best is None or best == history.seed or self.in_force or self._asker(agent) != agent:
            return False
        calls = history.counts.charged if history.attempts.horizon is None else self._now()
        if self._proposals and self._proposals - calls <= LEAST:
            return False
        since = max([history.phylogeny[best].move, *(self._news(each) for each in known[-1:])])
        return CALLS_EACH * (len(known) + 1) <= calls and self._now() - since >= self._wait()

    def line(self, tactic: str) -> list[str]:
        """The valid candidates that were made by a tactic, oldest first."""
        history, pruned = self.history, self.history.pruned
        made = [each for each, by in history.advised.items() if by == tactic and each not in pruned]
        return [each for each in made if history.fitness(each) is not None]

    def best_of(self, tactic: str) -> str | None:
        """The fittest candidate that a tactic made; None while there is none."""
        best: str | None = None
        for each in self.line(tactic):
            if best is None or self.history.fitter(each, best):
                best = each
        return best

    def _news(self, tactic: str) -> int:
        """The move in which a tactic was given, or made what is better than all that it made before."""
        made = self.best_of(tactic)
        given = self.history.tactics[tactic].move
        return max(given, self.history.phylogeny[made].move) if made else given

    def _known(self) -> Sequence[str]:
        """All tactics, in a deterministic run those that this move may know."""
        horizon = self.history.attempts.horizon
        return [entry for entry, each in self.history.tactics.items() if horizon is None or each.move <= horizon]

    def _now(self) -> int:
        horizon = self.history.attempts.horizon
        return self.history.moves if horizon is None else horizon

    def _wait(self) -> float:
        return max(LEAST, PLATEAU * self._proposals)

    @property
    def _proposals(self) -> int:
        """The limit on them; 0 where there is none."""
        return [*self.history.engines.values()][-1].settings.get("proposals") or 0

    def _asker(self, agent: str) -> str:
        """The agent of an agent's engine whose model looks back, another one after each better candidate, or none."""
        engines = reversed(self.history.engines.values())
        started = next((each for each in engines if agent in each.agents), None)
        if started is None:
            return ""
        specs = [spec for spec in started.settings.get("population", ()) for _ in range(spec.get("count", 1))]
        able = [agent for agent, spec in zip(started.agents, specs, strict=False) if spec.get("kind") in CALLS]
        return able[len(self.history.records) % len(able)] if able else ""
