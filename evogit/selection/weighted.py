"""ShinkaEvolve's rule: fit candidates are drawn often, unless they have many children already."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence

from msgspec import Struct

from evogit.history import History
from evogit.selection.pool import Drawing, Offspring, Ranked, Ranking

PRESSURE = 10
"""The steepness of the weight over the score."""


class WeightedOptions(Struct, frozen=True, kw_only=True):
    """How many of the fittest are drawn from, and how much the score weighs."""

    archive: int = 40
    pressure: int = PRESSURE


class Weighted(Drawing):
    """Draws from the fittest `archive` candidates by sigmoid(pressure * score) / (1 + children).

    After ShinkaEvolve (Lange, Imajuku, Cetin, 2025, arXiv 2509.19349, "weighted" parent sampling).
    """

    name = "weighted"
    help = "the fit and the childless are drawn more often, after ShinkaEvolve"
    Options = WeightedOptions
    replaces = frozenset({"tournament"})

    def __init__(self, options: WeightedOptions = WeightedOptions()) -> None:  # noqa: B008 - it is frozen
        super().__init__()
        self._archive = options.archive
        self._pressure = options.pressure
        self._ranking = Ranking()
        self._offspring = Offspring()

    def draw(self, history: History, agent: str, rng: random.Random) -> str | None:
        """Return one of the archive, by its weight."""
        archive = self._ranking.of(history)[: self._archive]
        if not archive:
            return None
        return rng.choices(archive, weights(archive, self._offspring.of(history), self._pressure))[0][2]


def weights(archive: Sequence[Ranked], children: Mapping[str, int], pressure: int = PRESSURE) -> list[float]:
    """Return the weights of candidates, the fittest first.

    The score is the distance to the median in units of half the interquartile range, a spread that single outliers do
    not move, so that the pressure means the same for every metric; if most are equal, of half the whole range, 1 if all
    are. Halves are subtracted, since differences of the greatest numbers are infinite.
    """
    quarter = (len(archive) - 1) // 4
    middle = archive[len(archive) // 2][0] / 2
    unit = _half(archive[quarter], archive[-1 - quarter]) or _half(archive[0], archive[-1]) or 1.0
    scores = [pressure * 2 * (middle - worse / 2) / unit for worse, _, _ in archive]
    return [
        0.5 * (1 + math.tanh(score / 2)) / (1 + children.get(commit, 0))  # a sigmoid that never overflows
        for score, (_, _, commit) in zip(scores, archive, strict=True)
    ]


def _half(fitter: Ranked, other: Ranked) -> float:
    return other[0] / 2 - fitter[0] / 2
