"""What a merge or a graft would make, known before it is planned, so that what comes to nothing new is not tried."""

from __future__ import annotations

import random
from collections.abc import Sized
from dataclasses import dataclass, field
from io import BytesIO
from itertools import accumulate, islice
from typing import TypeVar

from evogit.core import RepositoryError
from evogit.history import History
from evogit.history.phylogeny import Phylogeny
from evogit.repository import Replaced, Side, UnfitChangeError, UnsettledMerge
from evogit.selection.anatomy import PLAIN, Anatomy, File
from evogit.selection.settlers import Crossing, draft, fitter, settler
from evogit.selection.strategies import FITTER, FUNCTION

MOST_TREES = 10_000
"""Merged trees that are remembered."""

MOST_LINES = 1_000_000
"""Lines, and replaced ones, that are remembered, about 50 bytes each."""

Content = int | File
"""A sum over the lines of a text, whatever their order; of anything else what Git has there."""

Held = TypeVar("Held", bound=Sized)

Contents = frozenset[tuple[str, Content]]

SIDES: tuple[Side, Side] = ("ours", "theirs")


@dataclass(slots=True)
class Previews:
    """Looks ahead of the merges and grafts of one run: at lines first, then at the tree that Git makes.

    All that it says follows from the candidates and from what is proposed by now, whatever it was asked before.
    """

    anatomy: Anatomy
    _trees: dict[tuple[str, tuple[str, str], str, Side], str] = field(default_factory=dict)
    """Operator, parents, strategy and the better side -> the tree."""
    _sums: dict[str, list[int]] = field(default_factory=dict)
    """Blob -> sums of its first lines, from none to all."""
    _replaced: dict[tuple[str, str], tuple[Replaced, ...] | None] = field(default_factory=dict)
    _held: int = 0
    _graph: Phylogeny | None = None
    _followed: int = 0
    """Candidates of the graph that were looked at."""
    _contents: dict[Contents, str] = field(default_factory=dict)
    """What differs from the seed -> the first candidate with that."""

    def is_told(self, history: History, expected: Contents) -> bool:
        """Whether some candidate, one of the two or any other, has what is `expected`, in any order."""
        self._follow(history)
        found = self._contents.get(expected)
        return found is not None and history.attempts.is_known(found)

    def _follow(self, history: History) -> None:
        """Take in the candidates that are new."""
        if history.phylogeny is not self._graph:
            self._graph = history.phylogeny
            self._contents = {}
            self._followed = 0
        for candidate in islice(self._graph, self._followed, None):
            files = self.anatomy.files(history, candidate.commit)
            contents = frozenset((path, self._of(file)) for path, file in files.items())
            self._contents.setdefault(contents, candidate.commit)
            self._followed += 1

    def expected(self, history: History, parents: tuple[str, str], before: str) -> Contents:
        """What a merge or graft would make whose conflicts the fitter one wins, of what differs from the seed.

        `before` is what the step of the second one began with. Told by the lines that were replaced: of the other side
        that is left which touches nothing that the fitter one replaced.
        """
        wins, loses = parents if fitter(history, parents) == "ours" else parents[::-1]
        files, file = self.anatomy.files, self.anatomy.file
        return frozenset(
            (path, self._merged(*(file(history, each, path) for each in (wins, loses, before))))
            for path in files(history, wins).keys() | files(history, loses).keys()
        )

    def _merged(self, wins: File, loses: File, then: File) -> Content:
        if loses in (then, wins):
            return self._of(wins)
        if wins == then:
            return self._of(loses)
        if not all(file.mode in PLAIN for file in (wins, loses, then)):
            return wins
        ahead, behind = (self._steps(then.blob, file.blob) for file in (wins, loses))
        if ahead is None or behind is None:
            return self._of(wins)
        left = [step for step in behind if not any(map(step.touches, ahead))]
        before, after = self._sum(then.blob), self._sum(loses.blob)
        gained = sum(after[step.stop] - after[step.begin] - before[step.end] + before[step.start] for step in left)
        return self._sum(wins.blob)[-1] + gained

    def _of(self, file: File) -> Content:
        return self._sum(file.blob)[-1] if file.mode in PLAIN else file

    def _sum(self, blob: str) -> list[int]:
        if blob not in self._sums:
            lines = BytesIO(self.anatomy.repository.trees.blob(blob))
            self._sums[blob] = self._remember([*accumulate(map(hash, lines), initial=0)])
        return self._sums[blob]

    def _steps(self, old: str, new: str) -> tuple[Replaced, ...] | None:
        if (old, new) not in self._replaced:
            found = self.anatomy.repository.trees.replaced(old, new)
            self._replaced[old, new] = self._remember(found) if found else found
        return self._replaced[old, new]

    def _remember(self, found: Held) -> Held:
        """Note how much is remembered; all is forgotten now and then, to bound the memory."""
        self._held += len(found)
        if self._held > MOST_LINES:
            self._sums = {}
            self._replaced = {}
            self._held = len(found)
        return found

    def is_new(self, history: History, operator: Crossing, parents: tuple[str, str], strategy: str) -> bool:
        """Whether two candidates make what nobody proposed.

        A coin or a model may settle a conflict as either side has it, so there must be news in both ways.
        """
        sides = (fitter(history, parents),) if strategy in (FITTER, FUNCTION) else SIDES
        try:
            found = draft(self.anatomy.repository, history, operator, parents)
            settled = FUNCTION if strategy == FUNCTION and found.conflicts else FITTER
            return not any(is_known(history, self._tree(operator, parents, settled, side, found)) for side in sides)
        except UnfitChangeError:
            return False
        except RepositoryError:  # whoever makes it says what is missing
            return True

    def _tree(
        self, operator: Crossing, parents: tuple[str, str], strategy: str, side: Side, found: UnsettledMerge
    ) -> str:
        key = operator, parents, strategy, side
        if key not in self._trees:
            if len(self._trees) >= MOST_TREES:
                self._trees = {}
            merger = self.anatomy.repository.merger
            self._trees[key] = merger.merge(found, settler(merger, strategy, side, random.Random(0))).tree
        return self._trees[key]


def is_known(history: History, tree: str) -> bool:
    """Whether a tree was proposed before, as far as a deterministic run may know."""
    return tree in history.trees and history.attempts.is_known(history.trees[tree])
