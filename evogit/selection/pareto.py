"""Selection by more than one number: the metrics of a task, or its cases."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Literal

from evogit.history import History
from evogit.selection.cases import Leaders
from evogit.selection.fronts import Front, Fronts
from evogit.selection.index import Ranked
from evogit.selection.pool_selector import Drawing

Over = Literal["metrics", "cases", ""]

DEPTH = 5
"""Fronts that parents are drawn from: a single one may be a single candidate."""


class Pareto(Drawing):
    """Draws from those that are unbeaten over metrics or cases; by default over cases where a task has several.

    Over cases it draws a candidate best on some case, in proportion to the number of cases; leaders share those they
    lead together: GEPA (Agrawal et al., 2025, arXiv 2507.19457). Over metrics it is the binary tournament of
    NSGA-II (Deb, Pratap, Agarwal, Meyarivan, 2002): the better front wins, within a front the less crowded.
    """

    def __init__(self, over: Over = "") -> None:
        super().__init__()
        self._over = over
        self._leaders = Leaders()
        self._fronts = Fronts(DEPTH)

    def draw(self, history: History, rng: random.Random) -> str | None:
        """One of the unbeaten."""
        if self._over != "metrics":
            leaders = self._leaders.of(history)
            if len(leaders) > 1 or leaders and self._over == "cases":
                return _leader(leaders, rng)
        return _unbeaten(self._fronts.of(history), rng)


def _leader(leaders: Sequence[Sequence[Ranked]], rng: random.Random) -> str:
    return rng.choice(rng.choice(leaders))[2]


def _unbeaten(fronts: Sequence[Front], rng: random.Random) -> str | None:
    if not fronts:
        return None
    (level, one), (other_level, other) = _drawn(fronts, rng), _drawn(fronts, rng)
    if level == other_level:
        front = fronts[level]
        winner = other if front.crowding(other) > front.crowding(one) else one
    else:
        level, winner = min((level, one), (other_level, other))
        front = fronts[level]
    return rng.choice(front.members[winner])[1]


def _drawn(fronts: Sequence[Front], rng: random.Random) -> tuple[int, tuple[float, ...]]:
    """One of all vectors, with the number of its front."""
    place = rng.randrange(sum(map(len, fronts)))
    for level, front in enumerate(fronts):
        if place < len(front):
            return level, front[place]
        place -= len(front)
    raise AssertionError("a place beyond the last front")
