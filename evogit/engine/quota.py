"""What a run may still do: hard limits that moves in flight are counted against before they begin."""

from __future__ import annotations

from evogit.config.run_settings import RunLimits
from evogit.core import Metric, StopReason
from evogit.history import History
from evogit.selection.pareto import several

EXHAUSTED_AFTER = 200
"""Moves in a row without a new tree, by every agent some, after which a run has nothing more to find."""

NO_LIMITS = RunLimits()


def bound(metric: Metric, split: str) -> float | None:
    """Return the value at which a run has nothing left to find; it is declared for the split `train` alone."""
    return metric.best_known if metric.bound and split == "train" else None


class Quota:
    """Limits on evaluations and proposals, and a target, over the history of one run.

    A move is reserved before it is planned and released when its result is applied, so no limit is ever exceeded;
    what other engines of the run have in flight counts too.
    """

    def __init__(self, history: History, engine: str, agents: int, limits: RunLimits = NO_LIMITS) -> None:
        self._history = history
        self._engine = engine
        self._limits = limits
        self.agents = agents
        self._in_flight = 0
        self._thinking = 0
        self._moves = 0
        self._waiting: list[str] = []
        self._barren: list[str] = []

    @property
    def _used(self) -> int:
        """Evaluations that use up the limit."""
        counts = self._history.counts
        return counts.evaluated + (counts.repeated + counts.references) * self._limits.count_repeats

    @property
    def thinking(self) -> int:
        """Proposals that are being made."""
        return self._thinking

    def has_room_to_repeat(self) -> bool:
        """Whether the limit allows one more repeat, beside all that is in flight."""
        if self._limits.evaluations is None or not self._limits.count_repeats:
            return True
        return self._used + max(self._in_flight, len(self._history.pending)) < self._limits.evaluations

    def over(self) -> StopReason | None:
        """The limit that is reached, None while there is something left to do."""
        counts = self._history.counts
        if self._limits.evaluations is not None and self._used >= self._limits.evaluations:
            return "evaluations"
        if self._limits.proposals is not None and counts.charged >= self._limits.proposals and not self._in_flight:
            return "proposals"
        if self._limits.target is not None and self._reached(self._limits.target):
            return "target"
        if not self._limits.beyond and self._has_the_bound():
            return "best-known"
        if self._limits.patience is not None and self._history.stagnant >= self._limits.patience:
            return "patience"
        exhausted = len(self._barren) >= EXHAUSTED_AFTER and len(set(self._barren)) == self.agents
        return "exhausted" if exhausted else None

    def _has_the_bound(self) -> bool:
        """Return whether the best possible value of these cases is reached, and the seed was not there before."""
        history, known = self._history, bound(self._history.metric, self._history.split)
        seed = history.fitness(history.seed or "")
        if known is None or seed is None or several(history):
            return False
        return history.metric.better(known, seed) and self._reached(known)

    def _reached(self, target: float) -> bool:
        best = self._history.best
        value = self._history.fitness(best) if best else None
        return value is not None and not self._history.metric.better(target, value)

    def reserve(self, agent: str) -> bool:
        """Count one move of an agent as in flight if every limit allows it, and those who were refused before."""
        if agent not in self._waiting:
            self._waiting.append(agent)
        if not self._has_room(self._waiting.index(agent)):
            return False
        self._waiting.remove(agent)
        self._moves += 1
        self._in_flight += 1
        self._thinking += 1
        return True

    def stand_back(self, agent: str) -> None:
        """Keep no room for an agent that was refused and will not ask again for a while."""
        if agent in self._waiting:
            self._waiting.remove(agent)

    def _has_room(self, ahead: int) -> bool:
        """Whether there is room for another move after those that are in flight and `ahead` more."""
        counts = self._history.counts
        foreign = sum(each.engine != self._engine for each in self._history.pending.values())
        evaluations = self._limits.evaluations
        if evaluations is not None and self._used + self._in_flight + foreign + ahead >= evaluations:
            return False
        return self._limits.proposals is None or counts.charged + self._thinking + ahead < self._limits.proposals

    def full(self, *, counted: bool = False) -> bool:
        """Whether what was proposed here or elsewhere uses up a limit: the last check, as a candidate is journalled.

        `counted` is True for what is no proposal of its own: a further step of a session, a merge that asks no model.
        """
        evaluations, proposals = self._limits.evaluations, self._limits.proposals
        if not counted and proposals is not None and self._history.counts.charged >= proposals:
            return True
        return evaluations is not None and self._used + len(self._history.pending) >= evaluations

    def more(self, wanted: int) -> int:
        """Count up to so many more candidates of the move that was reserved last; how many every limit has room for.

        A move of every agent that is at leisure comes first.
        """
        granted = 0
        while granted < wanted and self._has_room(max(self.agents - self._moves, 0)):
            self._in_flight += 1
            self._thinking += 1
            granted += 1
        return granted

    def proposed(self, count: int = 1) -> None:
        """So many proposals of a move, usable or not, are journalled."""
        self._thinking -= count

    def step(self, *, reserved: bool) -> bool:
        """Count an evaluation for a step of a session: of those `reserved` for its move, or one more if there is room.

        It is no proposal of its own.
        """
        if reserved:
            self._thinking -= 1
            return True
        limit = self._limits.evaluations
        foreign = sum(each.engine != self._engine for each in self._history.pending.values())
        if limit is not None and self._used + self._in_flight + foreign >= limit:
            return False
        self._in_flight += 1
        return True

    def settled(self) -> None:
        """A step that was kept in the middle of a move is evaluated: the history counts it from now on."""
        self._in_flight -= 1

    def release(self, agent: str, *, new_tree: bool, more: int = 0, unused: int = 0) -> None:
        """The result of an agent's move is applied, of which `more` was counted and of that `unused` not proposed."""
        self._moves -= 1
        self._in_flight -= 1 + more
        self._thinking -= unused
        self._barren = [] if new_tree else [*self._barren[-EXHAUSTED_AFTER * self.agents :], agent]
