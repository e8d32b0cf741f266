"""ShinkaEvolve's rule: fit candidates are drawn often, unless they have many children already."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from evogit.history import History
from evogit.selection.index import Offspring, Ranked, Ranking
from evogit.selection.pool_selector import Drawing


class Weighted(Drawing):
    """Draws from the fittest `archive` candidates by sigmoid(pressure * score) / (1 + children).

    After ShinkaEvolve (Lange, Imajuku, Cetin, 2025, arXiv 2509.19349, "weighted" parent sampling). The score is the
    distance to the median of the archive in units of half its interquartile range, a spread that single outliers do
    not move, so that the pressure means the same for every metric; that unit is ours.
    """

    def __init__(self, archive: int = 40, pressure: int = 10) -> None:
        super().__init__()
        self._archive = archive
        self._pressure = pressure
        self._ranking = Ranking()
        self._offspring = Offspring()

    def draw(self, history: History, rng: random.Random) -> str | None:
        """One of the archive, by its weight."""
        archive = self._ranking.of(history).first(self._archive)
        if not archive:
            return None
        return rng.choices(archive, self._weights(archive, history))[0][2]

    def _weights(self, archive: Sequence[Ranked], history: History) -> list[float]:
        children = self._offspring.of(history)
        middle, unit = archive[len(archive) // 2][0], _unit(archive)
        scores = [self._pressure * 2 * (middle / 2 - worse / 2) / unit for worse, _, _ in archive]
        return [_sigmoid(score) / (1 + children[commit]) for score, (_, _, commit) in zip(scores, archive, strict=True)]


def _unit(archive: Sequence[Ranked]) -> float:
    """Half the interquartile range; where most are equal, half the whole range; 1 where all are.

    Halves are subtracted here and above, since differences of the greatest numbers are none.
    """
    quarter = (len(archive) - 1) // 4
    return _half(archive[quarter], archive[-1 - quarter]) or _half(archive[0], archive[-1]) or 1.0


def _half(fitter: Ranked, other: Ranked) -> float:
    return other[0] / 2 - fitter[0] / 2


def _sigmoid(x: float) -> float:
    return 0.5 * (1 + math.tanh(x / 2))  # never overflows
