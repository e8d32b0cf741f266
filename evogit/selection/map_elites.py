"""MAP-Elites: the fittest of each kind, where a person says what makes a kind."""

from __future__ import annotations

import random
from collections.abc import Sequence

from evogit.history import History
from evogit.selection.cells import Axis, Cells, Trait
from evogit.selection.pool_selector import Drawing


class MapElites(Drawing):
    """Draws a cell of the grid, all alike, and in it the fittest candidate.

    Mouret and Clune (2015, "Illuminating search spaces by mapping elites", arXiv 1504.04909). What cannot be described
    is in no cell; the rest lies in one for good, so that each kind keeps its place beside a fitter one.
    """

    def __init__(self, axes: Sequence[tuple[Trait, Axis]]) -> None:
        super().__init__()
        self._cells = Cells(axes)

    def draw(self, history: History, rng: random.Random) -> str | None:
        """The elite of some cell."""
        occupied, cells = self._cells.of(history)
        return cells[rng.choice(occupied)][0][2] if occupied else None
