"""Indexes: what selectors ask of all valid candidates, kept up to date by looking at each evaluation once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Set as AbstractSet
from typing import Generic, TypeVar

from evogit.history import History
from evogit.history.scores import Scores
from evogit.selection.ladder import Ladder

Value = TypeVar("Value")
"""What an index knows of a candidate; equal when nothing that matters to it changed."""

Ranked = tuple[float, int, str]
"""Fitness with its sign such that less is better, the candidate's number, its id: in this order."""


class Index(ABC, Generic[Value]):
    """Follows a history: the candidates that may breed are in, and what they are worth may change.

    What it holds is a function of the history as it stands, whatever it was asked before: after any sequence of
    prunes, undoings and changed tasks it equals an index that sees the same history for the first time. It looks at
    what is new in the log of the scores, and at all where one verdict moves all of them.
    """

    def __init__(self) -> None:
        self._scores: Scores | None = None
        self._pruned: AbstractSet[str] = frozenset()
        self._position = 0
        self._held: dict[str, Value] = {}

    def follow(self, history: History) -> None:
        """Take in what is new."""
        scores, pruned = history.scores, history.pruned
        if scores is not self._scores:
            self._scores = scores
            self._position = 0
            self._held = {}
            self._clear()
        if scores.shifting and len(scores.log) > self._position:
            self._position = 0
        changed = scores.log[self._position :]
        self._position = len(scores.log)
        if pruned is not self._pruned:
            changed += sorted(pruned ^ self._pruned)
            self._pruned = pruned
        if changed and not all([self._look(history, commit) for commit in dict.fromkeys(changed)]):
            self._clear()
            for value in self._held.values():
                self._add(value)

    def _look(self, history: History, commit: str) -> bool:
        """Take in what a candidate is now; False if the index must be rebuilt."""
        before = self._held.pop(commit, None)
        now = self._value(history, commit) if breeds(history, commit) else None
        if now is not None:
            self._held[commit] = now
        if before == now:
            return True
        done = before is None or self._remove(before)
        if now is not None:
            self._add(now)
        return done

    @abstractmethod
    def _value(self, history: History, commit: str) -> Value | None:
        """What there is to know of a valid candidate; None leaves it out."""

    @abstractmethod
    def _clear(self) -> None:
        """Forget all."""

    @abstractmethod
    def _add(self, value: Value) -> None:
        """Take in a candidate; the order of many must not matter."""

    @abstractmethod
    def _remove(self, value: Value) -> bool:
        """Take out a candidate; False if the index must be rebuilt."""


def breeds(history: History, commit: str) -> bool:
    """Whether a candidate is valid, not pruned, and no mere trial of `evogit minimize`."""
    if commit in history.pruned or history.fitness(commit) is None:
        return False
    return not history.phylogeny.is_trial(commit)


def ranked(history: History, commit: str) -> Ranked:
    """What a valid candidate is sorted by: the fitter first, of equals the one known longer."""
    fitness = history.fitness(commit)
    assert fitness is not None
    worse = -fitness if history.metric.direction == "maximize" else fitness
    return worse, history.phylogeny.numbers[commit], commit


class Ranking(Index[Ranked]):
    """All valid candidates, the fittest first."""

    def __init__(self) -> None:
        super().__init__()
        self._ranked = Ladder[Ranked]()

    def of(self, history: History) -> Ladder[Ranked]:
        """The candidates of this history; valid until the next question."""
        self.follow(history)
        return self._ranked

    def _value(self, history: History, commit: str) -> Ranked:
        return ranked(history, commit)

    def _clear(self) -> None:
        self._ranked = Ladder()

    def _add(self, value: Ranked) -> None:
        self._ranked.add(value)

    def _remove(self, value: Ranked) -> bool:
        self._ranked.remove(value)
        return True


class Offspring:
    """How many children of each candidate were evaluated, under whatever task; those that wait are not counted.

    Whether a candidate that waits is known already depends on time, even in a deterministic run.
    """

    def __init__(self) -> None:
        self._judgements: list[str] | None = None
        self._position = 0
        self._children: Counter[str] = Counter()

    def of(self, history: History) -> Counter[str]:
        """Id -> number of children, for this history; valid until the next question."""
        judgements = history.judgements
        if judgements is not self._judgements:
            self._judgements = judgements
            self._position = 0
            self._children = Counter()
        for commit in judgements[self._position :]:
            self._children.update(history.phylogeny.parents(commit))
        self._position = len(judgements)
        return self._children
