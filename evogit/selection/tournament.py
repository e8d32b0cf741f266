"""Tournament selection: the fittest of a few drawn at random."""

from __future__ import annotations

import random
from itertools import islice

from evogit.history import History
from evogit.selection.index import Ranked, Ranking, breeds, ranked
from evogit.selection.ladder import Ladder
from evogit.selection.pool_selector import Drawing


class Tournament(Drawing):
    """The fittest of `size` candidates, each drawn from all valid ones or from the `latest` evaluated.

    Goldberg and Deb (1991), "A comparative analysis of selection schemes used in genetic algorithms". With `latest`
    it is the ageing evolution of Real et al. (2019, arXiv 1802.01548): old candidates do not breed, however fit.
    """

    def __init__(self, size: int = 4, latest: int = 0) -> None:
        super().__init__()
        self._size = size
        self._latest = latest
        self._ranking = Ranking()

    def draw(self, history: History, rng: random.Random) -> str | None:
        """The winner of one tournament."""
        pool = _latest(history, self._latest) if self._latest else self._ranking.of(history)
        if not len(pool):
            return None
        smallest = 1 - rng.random() ** (1 / self._size)  # of `size` numbers from 0 to 1
        return pool[min(int(smallest * len(pool)), len(pool) - 1)][2]


def _latest(history: History, most: int) -> Ladder[Ranked]:
    """The candidates evaluated last that may breed, the fittest first."""
    may = (each for each in reversed(history.judgements) if breeds(history, each))
    return Ladder(ranked(history, each) for each in islice(may, most))
