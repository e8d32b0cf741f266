"""Selection by more than one number: the candidates that are unbeaten over the metrics of a task, or over its cases."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from operator import ge
from typing import Literal

from msgspec import Struct

from evogit.history import History
from evogit.history.per_candidate import Lessons
from evogit.selection.pool import Drawing, Ranking

OVER_METRICS = re.compile(r"(islands:.*\bof=)?pareto\b.*\bover=metrics\b").match
"""Selectors that take every metric of the task for an objective."""

DEPTH = 5
"""Fronts that parents are drawn from: a single one may be a single candidate."""

Vector = tuple[float, ...]
"""The values of all metrics, with their signs such that more is better."""


def dominates(a: Vector, b: Vector) -> bool:
    """Return whether `a` is nowhere worse than `b`, and better somewhere."""
    return a != b and all(map(ge, a, b))


class Front:
    """Vectors of which none dominates another, each with its candidates: those that measure the same are one."""

    def __init__(self) -> None:
        self.members: dict[Vector, list[str]] = {}

    def crowding(self, vector: Vector) -> float:
        """Return the crowding distance (Deb et al., 2002, section III-B): how far its neighbours are from each other.

        Summed over metrics, each in units of its range in this front; infinite at the ends.
        """
        distance = 0.0
        for value, column in zip(vector, zip(*self.members, strict=True), strict=True):
            order = sorted(column)
            place = order.index(value)
            if place == 0 or value == order[-1]:
                return float("inf")
            span = order[-1] / 2 - order[0] / 2  # halves: differences of the greatest numbers are none
            distance += (order[place + 1] / 2 - order[place - 1] / 2) / span
        return distance


class Fronts:
    """The first fronts of all valid candidates by all metrics of the task, at most `depth`."""

    def __init__(self, depth: int) -> None:
        self._depth = depth
        self._ranking = Ranking()
        self._vectors = Lessons(_vector)

    def of(self, history: History) -> Sequence[Front]:
        """Return the fronts of this history, the best first."""
        vectors = self._vectors.of(history, history.judgements)
        members: dict[Vector, list[str]] = {}
        for _, _, commit in self._ranking.of(history):
            if vector := vectors[commit]:
                members.setdefault(vector, []).append(commit)
        fronts = [Front() for _ in range(self._depth)]
        for vector in sorted(members, reverse=True):  # none is dominated by one that comes later
            for front in fronts:
                if not any(dominates(each, vector) for each in front.members):
                    front.members[vector] = members[vector]
                    break
        return [front for front in fronts if front.members]


class Leaders:
    """The candidates that are best on each case, by the primary metric; of equals there the fittest in all.

    The front of GEPA (Agrawal et al., 2025, arXiv 2507.19457, algorithm 2). There a candidate without which no case
    lacks a leader goes; that equals yield to the fittest in all is what we have in its place.
    """

    def __init__(self) -> None:
        self._ranking = Ranking()

    def of(self, history: History) -> Sequence[Sequence[str]]:
        """Return the leaders of each case, in the order of its name."""
        sign = history.metric.sign
        best: dict[str, tuple[float, float]] = {}
        leaders: dict[str, list[str]] = {}
        for worse, _, commit in self._ranking.of(history):
            for case, value in history.scores.cases(commit).items():
                rank = sign * value, -worse
                if case not in best or rank > best[case]:
                    best[case], leaders[case] = rank, []
                if rank == best[case]:
                    leaders[case].append(commit)
        return [leaders[case] for case in sorted(leaders)]


class ParetoOptions(Struct, frozen=True):
    """The objectives of the front; empty: cases if the task has several, else metrics."""

    over: Literal["metrics", "cases", ""] = ""


class Pareto(Drawing):
    """Draws from those that are unbeaten over metrics or cases; by default over cases where a task has several.

    Over cases it draws a candidate best on some case, in proportion to the number of cases; leaders share those they
    lead together: GEPA (Agrawal et al., 2025, arXiv 2507.19457). Over metrics it is the binary tournament of
    NSGA-II (Deb, Pratap, Agarwal, Meyarivan, 2002): the better front wins, within a front the less crowded.
    """

    name = "pareto"
    help = "candidates unbeaten over several metrics, or best on some case"
    Options = ParetoOptions

    def __init__(self, options: ParetoOptions = ParetoOptions()) -> None:  # noqa: B008 - it is frozen
        super().__init__()
        self._over = options.over
        self._leaders = Leaders()
        self._fronts = Fronts(DEPTH)

    def draw(self, history: History, agent: str, rng: random.Random) -> str | None:
        """Return one of the unbeaten."""
        if self._over != "metrics":
            leaders = self._leaders.of(history)
            if len(leaders) > 1 or leaders and self._over == "cases":
                return rng.choice(rng.choice(leaders))
        fronts = self._fronts.of(history)
        places = [(level, vector) for level, front in enumerate(fronts) for vector in front.members]
        if not places:
            return None
        one, other = rng.choice(places), rng.choice(places)
        if one[0] == other[0]:
            front = fronts[one[0]]
            winner = max(one, other, key=lambda place: front.crowding(place[1]))
        else:
            winner = min(one, other)
        return rng.choice(fronts[winner[0]].members[winner[1]])


def several(history: History) -> bool:
    """Return whether the run was last started to search over several metrics."""
    started = list(history.engines.values())
    selector = str(started[-1].settings.get("selector", "")) if started else ""
    metrics = history.started.metrics if history.started else ()
    return bool(OVER_METRICS(selector)) and len(metrics) > 1 and history.strengths is None


def front(history: History) -> list[str]:
    """Return the unbeaten, the best by the primary metric first; of those that measure the same the first one made."""
    fronts = Fronts(1).of(history)
    members = [members[0] for members in fronts[0].members.values()] if fronts else []
    sign = history.metric.sign
    return sorted(members, key=lambda commit: (-sign * (history.fitness(commit) or 0.0), commit))


def _vector(history: History, commit: str) -> Vector | None:
    """Return the values of a valid candidate; None if some metric was not measured."""
    evaluation, fitness = history.evaluation(commit), history.fitness(commit)
    if evaluation is None or fitness is None or history.started is None:
        return None
    metrics = history.started.metrics
    if any(metric.name not in evaluation.metrics for metric in metrics):
        return None
    return tuple(metric.sign * (fitness if metric.primary else evaluation.metrics[metric.name]) for metric in metrics)
