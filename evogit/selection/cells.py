"""A grid of what candidates are like, each cell with its candidates, kept up to date candidate by candidate."""

from __future__ import annotations

import math
import re
from bisect import bisect_left, insort
from collections.abc import Callable, Sequence

from msgspec import Struct

from evogit.core import UsageError
from evogit.history import History
from evogit.selection.index import Index, Ranked, ranked

Trait = Callable[[History, str], float | None]
"""Describes a valid candidate by a number; None where that cannot be told."""


def untold(history: History, commit: str) -> None:
    """Stands for a trait where nothing is asked but its name."""


MOST_CELLS = 1_000_000
"""Of an axis: more than anybody can fill."""

NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"


class Axis(Struct, frozen=True):
    """Values of a trait from `low` to `high` in equal parts; what lies beyond counts to the first or last one."""

    low: float
    high: float
    parts: int

    @classmethod
    def parse(cls, name: str, text: str) -> Axis:
        """Read `LOW..HIGH/PARTS`.

        Raises:
            UsageError: when it is something else.
        """
        match = re.fullmatch(rf"({NUMBER})\.\.({NUMBER})/(\d{{1,9}})", text)
        axis = cls(float(match[1]), float(match[2]), int(match[3])) if match else cls(0.0, 0.0, 0)
        if not 0 < axis._half < math.inf or not 0 < axis.parts <= MOST_CELLS:
            raise UsageError(f"expected {name}=LOW..HIGH/PARTS, such as {name}=0..100/20, got {name}={text:.200}")
        return axis

    def part(self, value: float) -> int:
        """The number of the part that a value lies in."""
        share = (value / 2 - self.low / 2) / self._half
        return int(min(max(share, 0.0), 1 - 1e-12) * self.parts)

    @property
    def _half(self) -> float:
        return self.high / 2 - self.low / 2  # of halves, as differences of the greatest numbers are none


Placed = tuple[tuple[int, ...], Ranked]
"""The cell of a candidate, and what ranks it there."""


class Cells(Index[Placed]):
    """The candidates of each cell, the fittest first: an archive that gives pruned ones up and calls the next back.

    Mouret and Clune (2015, arXiv 1504.04909). The GridArchive of pyribs keeps the same elites, but nothing can be taken
    out of it, and it brings numba, scikit-learn and pandas along.
    """

    def __init__(self, axes: Sequence[tuple[Trait, Axis]]) -> None:
        super().__init__()
        self._axes = axes
        self._cells: dict[tuple[int, ...], list[Ranked]] = {}
        self._occupied: list[tuple[int, ...]] = []

    def of(self, history: History) -> tuple[Sequence[tuple[int, ...]], dict[tuple[int, ...], list[Ranked]]]:
        """The occupied cells in order, and the candidates of each; valid until the next question."""
        self.follow(history)
        return self._occupied, self._cells

    def _value(self, history: History, commit: str) -> Placed | None:
        cell = []
        for trait, axis in self._axes:
            value = trait(history, commit)
            if value is None:
                return None
            cell.append(axis.part(value))
        return tuple(cell), ranked(history, commit)

    def _clear(self) -> None:
        self._cells = {}
        self._occupied = []

    def _add(self, value: Placed) -> None:
        cell, candidate = value
        if cell not in self._cells:
            self._cells[cell] = []
            insort(self._occupied, cell)
        insort(self._cells[cell], candidate)

    def _remove(self, value: Placed) -> bool:
        cell, candidate = value
        del self._cells[cell][bisect_left(self._cells[cell], candidate)]
        if not self._cells[cell]:
            del self._cells[cell], self._occupied[bisect_left(self._occupied, cell)]
        return True
