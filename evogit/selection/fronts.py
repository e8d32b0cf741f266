"""Non-dominated fronts, kept up to date candidate by candidate."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from operator import ge

from evogit.history import History
from evogit.selection.index import Index

Vector = tuple[float, ...]
"""The values of all metrics, with their signs such that more is better."""

Measured = tuple[Vector, int, str]
"""Values, number and id of a candidate."""


def dominates(a: Vector, b: Vector) -> bool:
    """Whether `a` is nowhere worse than `b`, and better somewhere."""
    return a != b and all(map(ge, a, b))


class Front:
    """Vectors of which none dominates another; candidates that measure the same count as one of them."""

    def __init__(self, metrics: int) -> None:
        self.members: dict[Vector, list[tuple[int, str]]] = {}
        self._sorted: list[list[tuple[float, Vector]]] = [[] for _ in range(metrics)]

    def __len__(self) -> int:
        return len(self.members)

    def __getitem__(self, index: int) -> Vector:
        return self._sorted[0][index][1]

    def add(self, vector: Vector, members: list[tuple[int, str]]) -> None:
        """Add a vector that is not here, with its candidates."""
        self.members[vector] = members
        for value, order in zip(vector, self._sorted, strict=True):
            insort(order, (value, vector))

    def pop(self, vector: Vector) -> list[tuple[int, str]]:
        """Take a vector out; returns its candidates."""
        for value, order in zip(vector, self._sorted, strict=True):
            del order[bisect_left(order, (value, vector))]
        return self.members.pop(vector)

    def crowding(self, vector: Vector) -> float:
        """The crowding distance (Deb et al., 2002, section III-B): how far its neighbours are from each other.

        Summed over metrics, each in units of its range in this front; infinite at the ends.
        """
        distance = 0.0
        for value, order in zip(vector, self._sorted, strict=True):
            place = bisect_left(order, (value, vector))
            if place in (0, len(order) - 1):
                return float("inf")
            span = order[-1][0] / 2 - order[0][0] / 2  # halves: differences of the greatest numbers are none
            distance += (order[place + 1][0] / 2 - order[place - 1][0] / 2) / span if span else 0.0
        return distance


class Fronts(Index[Measured]):
    """The first fronts of all valid candidates by all metrics of the task, at most `depth`.

    An addition only pushes others down, by one front at most, so that the first ones stay exact though the rest is
    forgotten (the efficient level update of Li, Deb, Zhang and Kwong, 2017, "Efficient Nondomination Level Update
    Method for Steady-State Evolutionary Multiobjective Optimization").
    """

    def __init__(self, depth: int) -> None:
        super().__init__()
        self._depth = depth
        self._fronts: list[Front] = []

    def of(self, history: History) -> Sequence[Front]:
        """The fronts of this history, best first; valid until the next question."""
        self.follow(history)
        return self._fronts

    def _value(self, history: History, commit: str) -> Measured | None:
        evaluation, fitness = history.evaluation(commit), history.fitness(commit)
        if evaluation is None or fitness is None or history.started is None:
            return None
        metrics = history.started.metrics
        if any(metric.name not in evaluation.metrics for metric in metrics):
            return None
        values = [fitness if metric.primary else evaluation.metrics[metric.name] for metric in metrics]
        vector = tuple(metric.sign * value for metric, value in zip(metrics, values, strict=True))
        return vector, history.phylogeny[commit].number, commit

    def _clear(self) -> None:
        self._fronts = []

    def _add(self, value: Measured) -> None:
        vector, number, commit = value
        level = 0
        while level < len(self._fronts):
            members = self._fronts[level].members
            if vector in members:
                return insort(members[vector], (number, commit))
            if not any(dominates(each, vector) for each in members):
                break
            level += 1
        return self._settle(level, {vector: [(number, commit)]})

    def _settle(self, level: int, coming: dict[Vector, list[tuple[int, str]]]) -> None:
        """Put vectors into a front; those that they dominate there go to the next, and so on."""
        while coming and level < self._depth:
            if level == len(self._fronts):
                self._fronts.append(Front(len(next(iter(coming)))))
            front = self._fronts[level]
            beaten = [each for each in front.members if any(dominates(new, each) for new in coming)]
            going = {each: front.pop(each) for each in beaten}
            for vector, members in coming.items():
                front.add(vector, members)
            level, coming = level + 1, going

    def _remove(self, value: Measured) -> bool:
        vector, number, commit = value
        for front in self._fronts:
            if members := front.members.get(vector):
                members.remove((number, commit))
                return bool(members)
        return True
