"""Lays the rows of a graph out in lanes, as `git log --graph` does, but with one line per candidate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntFlag
from itertools import zip_longest

from evogit.review.graph_skeleton import Row, SkeletonEdge


class Way(IntFlag):
    """The sides on which lines leave a cell."""

    UP = 1
    DOWN = 2
    LEFT = 4
    RIGHT = 8


@dataclass(slots=True)
class Cell:
    """One lane in one row: the lines that meet there, whether a candidate sits on them, whether the line is broken.

    `dotted` is the line to the right or left where it leads to an inspiration.
    """

    ways: Way = Way(0)
    node: bool = False
    broken: bool = False
    dotted: bool = False


def lanes(rows: Sequence[Row], trunk: str | None = None) -> list[list[Cell]]:
    """A list of cells for each row, left to right.

    The first parents of `trunk` (the best candidate, say) stay in the leftmost lane. A second parent's edge joins
    the lane that leads there already, or opens one to the right.
    """
    layout = _Layout(trunk)
    return [layout.place(row) for row in rows]


class _Layout:
    """The lanes between two rows: each is free (None) or leads down to a candidate."""

    def __init__(self, trunk: str | None) -> None:
        self._lanes: list[SkeletonEdge | None] = [SkeletonEdge(trunk, True)] if trunk else []
        self._reserved = trunk is not None  # the first lane, until its candidate comes: nothing is drawn there

    def place(self, row: Row) -> list[Cell]:
        """Take in the next row and draw it."""
        above = self._drawn()
        arriving = [i for i, lane in enumerate(self._lanes) if lane and lane.parent == row.candidate.commit]
        here = arriving[0] if arriving else self._free(0, ())
        self._reserved &= here != 0
        for i in arriving:
            self._lanes[i] = None
        self._lanes[here] = row.edges[0] if row.edges else None
        joined = {self._join(edge, here, arriving): edge for edge in row.edges[1:]}
        cells = [_cell(*pair) for pair in zip_longest(above, self._drawn())]
        cells[here].node = True
        for there in sorted([*arriving[1:], *joined], key=lambda each: each in joined and joined[each].inspiration):
            _bridge(cells, here, there, dotted=there in joined and joined[there].inspiration)
        while self._lanes and self._lanes[-1] is None:
            self._lanes.pop()
        return cells

    def _drawn(self) -> list[SkeletonEdge | None]:
        return [None if i == 0 and self._reserved else lane for i, lane in enumerate(self._lanes)]

    def _join(self, edge: SkeletonEdge, here: int, arriving: Sequence[int]) -> int:
        """The lane that leads to the second parent, a new one if need be."""
        for i, lane in enumerate(self._drawn()):
            if lane and lane.parent == edge.parent and i != here:
                return i
        free = self._free(here + 1, arriving)
        self._lanes[free] = edge
        return free

    def _free(self, start: int, taken: Sequence[int]) -> int:
        for i in range(start, len(self._lanes)):
            if self._lanes[i] is None and i not in taken:
                return i
        self._lanes.append(None)
        return len(self._lanes) - 1


def _cell(above: SkeletonEdge | None, below: SkeletonEdge | None) -> Cell:
    ways = (Way.UP if above else Way(0)) | (Way.DOWN if below else Way(0))
    return Cell(ways, broken=above is not None and above is below and not above.direct)


def _bridge(cells: list[Cell], here: int, there: int, *, dotted: bool) -> None:
    """Draw the horizontal line between the candidate and another lane; what is solid already stays so."""
    left, right = min(here, there), max(here, there)
    for cell in cells[left:right]:
        cell.dotted |= dotted and not cell.ways & Way.RIGHT
    cells[left].ways |= Way.RIGHT
    cells[right].ways |= Way.LEFT
    for cell in cells[left + 1 : right]:
        cell.ways |= Way.LEFT | Way.RIGHT
