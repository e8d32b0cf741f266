"""The graph of a run: which candidates are shown, how they are connected, and in which lanes their lines run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import IntFlag
from itertools import zip_longest

from msgspec import Struct

from evogit.core import Candidate
from evogit.history import History


class SkeletonEdge(Struct, frozen=True):
    """The way down to `parent`, a shown candidate; it is not `direct` when it leads through some that are not.

    An `inspiration` is no parent: an agent was shown it, and the child has lines that it brought.
    """

    parent: str
    direct: bool
    inspiration: bool = False


class Row(Struct, frozen=True):
    """A shown candidate, its nearest shown ancestors, and how many candidates are folded into it."""

    candidate: Candidate
    edges: tuple[SkeletonEdge, ...]
    folded: int


def landmarks(history: History) -> list[str]:
    """The seed, the best, what people decided about, the living, and the records, the largest step first."""
    fitness = [history.fitness(commit) or 0.0 for commit in history.records]
    steps = [abs(new - old) for old, new in zip([0.0, *fitness], fitness, strict=False)]
    records = [commit for _, commit in sorted(zip(steps, history.records, strict=True), reverse=True)]
    named = [commit for entry in history.in_force() for commit in getattr(entry.event, "candidates", ())]
    wanted = [history.seed, history.best, *named, *history.living(), *records]
    return list(dict.fromkeys(commit for commit in wanted if commit and commit in history.phylogeny))


def skeleton(history: History) -> set[str]:
    """The landmarks and what they come from, parents and inspirations; all else is a dead end."""
    graph, found = history.phylogeny, history.inspirations
    shown = graph.skeleton(landmarks(history))
    while more := {each for child in shown & found.keys() for each in found[child]} - shown:
        shown |= graph.ancestors(*more)
    return shown


def most_telling(history: History, shown: Collection[str], limit: int) -> set[str]:
    """At most `limit` of the shown candidates: the landmarks first, then the youngest."""
    first = [commit for commit in landmarks(history) if commit in shown]
    young = sorted(shown, key=lambda commit: -history.phylogeny.numbers[commit])
    return set(list(dict.fromkeys([*first, *young]))[:limit])


def rows(history: History, shown: Collection[str]) -> list[Row]:
    """The shown candidates, seed included, the youngest first; others are folded into the nearest shown ancestor."""
    owner: dict[str, str] = {}
    phylogeny = history.phylogeny
    for commit in phylogeny.ids:
        parents = phylogeny.parents(commit)
        folded = owner[parents[0]] if parents else history.seed or ""
        owner[commit] = commit if commit in shown else folded
    sizes = Counter(owner.values())
    kept = (phylogeny[commit] for commit in phylogeny.ids if commit in shown)
    found = history.inspirations
    return [Row(each, _edges(each, owner, found.get(each.commit, ())), sizes[each.commit] - 1) for each in kept][::-1]


def _edges(candidate: Candidate, owner: dict[str, str], inspirations: Sequence[str]) -> tuple[SkeletonEdge, ...]:
    edges: dict[str, SkeletonEdge] = {}
    for parent in candidate.parents:
        edges.setdefault(owner[parent], SkeletonEdge(owner[parent], owner[parent] == parent))
    for each in inspirations:
        edges.setdefault(owner[each], SkeletonEdge(owner[each], owner[each] == each, inspiration=True))
    return tuple(edges.values())


# --- lanes, as `git log --graph` has them, but with one line per candidate -------------------------------------------


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


def lanes(rows: Sequence[Row], trunk: str | None = None, limit: int | None = None) -> Iterator[list[Cell]]:
    """Yield the cells of each row; the first parents of `trunk` (the best, say) stay in the leftmost lane.

    Only the first `limit` lanes have cells, as a large graph has hundreds of lanes in each row.
    """
    layout = _Layout(trunk, limit)
    return (layout.place(row) for row in rows)


class _Layout:
    """The lanes between two rows: each is free (None) or leads down to a candidate."""

    def __init__(self, trunk: str | None, limit: int | None) -> None:
        self._limit = limit
        self._lanes: list[SkeletonEdge | None] = [SkeletonEdge(trunk, True)] if trunk else []
        self._reserved = trunk is not None  # the first lane, until its candidate comes: nothing is drawn there

    def place(self, row: Row) -> list[Cell]:
        above = self._drawn()[: self._limit]
        arriving = [i for i, lane in enumerate(self._lanes) if lane and lane.parent == row.candidate.commit]
        here = arriving[0] if arriving else self._free(0, ())
        self._reserved &= here != 0
        for i in arriving:
            self._lanes[i] = None
        self._lanes[here] = row.edges[0] if row.edges else None
        joined = {self._join(edge, here, arriving): edge for edge in row.edges[1:]}
        cells = [
            Cell(
                (Way.UP if over else Way(0)) | (Way.DOWN if under else Way(0)),
                broken=over is under and over is not None and not over.direct,
            )
            for over, under in zip_longest(above, self._drawn()[: self._limit])
        ]
        if here < len(cells):
            cells[here].node = True
        for there in sorted([*arriving[1:], *joined], key=lambda each: each in joined and joined[each].inspiration):
            _bridge(cells, here, there, dotted=there in joined and joined[there].inspiration)
        while self._lanes and self._lanes[-1] is None:
            self._lanes.pop()
        return cells

    def _drawn(self) -> list[SkeletonEdge | None]:
        return [None if i == 0 and self._reserved else lane for i, lane in enumerate(self._lanes)]

    def _join(self, edge: SkeletonEdge, here: int, arriving: Sequence[int]) -> int:
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


def _bridge(cells: list[Cell], here: int, there: int, *, dotted: bool) -> None:
    """Draw the horizontal line between the candidate and another lane; what is solid already stays so."""
    left, right = min(here, there), max(here, there)
    for cell in cells[left:right]:
        cell.dotted |= dotted and not cell.ways & Way.RIGHT
        cell.ways |= Way.RIGHT
    for cell in cells[left + 1 : right + 1]:
        cell.ways |= Way.LEFT
