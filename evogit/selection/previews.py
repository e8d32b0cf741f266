"""What a merge or a graft would make, known before it is planned, so that what comes to nothing new is not tried."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from evogit.core import RepositoryError
from evogit.history import History
from evogit.history.phylogeny import Phylogeny
from evogit.repository import Side, UnfitChangeError, UnsettledMerge
from evogit.repository.diff_limits import LARGEST
from evogit.selection.anatomy import PLAIN, Anatomy, File
from evogit.selection.conflict_settlers import Crossing, draft, fitter, refuse_repeats, settler
from evogit.selection.merge_strategies import FITTER, FUNCTION

MOST_TREES = 10_000
"""Merged trees that are remembered."""

MOST_LINES = 1_000_000
"""Lines that are remembered, about 100 bytes each."""

LONGEST = 20_000
"""Lines of a file that is looked into."""

MOST_STEPS = 1_000
"""Pairs of files of which it is remembered what differs; most are asked about many times, one after the other."""

Lines = frozenset[bytes]

Contents = frozenset[tuple[str, Lines | File]]

SIDES: tuple[Side, Side] = ("ours", "theirs")


@dataclass(slots=True)
class Previews:
    """Looks ahead of the merges and grafts of one run: at lines first, then at the tree that Git makes.

    All that it says follows from the candidates and from what is proposed by now, whatever it was asked before.
    """

    anatomy: Anatomy
    _trees: dict[tuple[str, tuple[str, str], str, Side], str] = field(default_factory=dict)
    """Operator, parents, strategy and the better side -> the tree."""
    _lines: dict[str, Lines | None] = field(default_factory=dict)
    _held: int = 0
    _steps: dict[tuple[str, str], tuple[Lines, Lines]] = field(default_factory=dict)
    """Blob before and after -> the lines that came, and those that went."""
    _graph: Phylogeny | None = None
    _followed: int = 0
    """Candidates of the graph that were looked at."""
    _contents: dict[Contents, str] = field(default_factory=dict)
    """What differs from the seed -> the first candidate with that."""

    def brings(self, history: History, onto: str, commit: str, before: str, *, wins: bool = False) -> bool:
        """Whether something is left of the step from `before` to `commit` that `onto` has not.

        Told by the lines: where `onto` wins conflicts, a step that only replaced lines which `onto` has replaced, too,
        is lost. What cannot be told so is taken for new. `wins`: the step wins conflicts.
        """
        theirs, then = self.anatomy.files(history, commit), self.anatomy.files(history, before)
        for path in theirs.keys() | then.keys():
            versions = [self.anatomy.file(history, each, path) for each in (onto, commit, before)]
            if self._adds(*versions, wins=wins):
                return True
        return False

    def is_told(self, history: History, onto: str, commit: str, before: str) -> bool:
        """Whether some candidate has the lines that the step would leave in `onto`, in any order, conflicts aside."""
        self._follow(history)
        found = self._contents.get(self._expected(history, onto, commit, before))
        return found is not None and history.attempts.is_known(history.phylogeny[found])

    def _follow(self, history: History) -> None:
        """Take in the candidates that are new."""
        if history.phylogeny is not self._graph:
            self._graph = history.phylogeny
            self._contents = {}
            self._followed = 0
        for commit in self._graph.ids[self._followed :]:
            self._contents.setdefault(self._expected(history, commit, commit, commit), commit)
            self._followed += 1

    def _expected(self, history: History, onto: str, commit: str, before: str) -> Contents:
        """Path -> lines, of what differs from the seed in one of them."""
        paths = self.anatomy.files(history, onto).keys() | self.anatomy.files(history, commit).keys()
        return frozenset(
            (path, self._sum(*(self.anatomy.file(history, each, path) for each in (onto, commit, before))))
            for path in paths
        )

    def _sum(self, mine: File, its: File, then: File) -> Lines | File:
        have = self._text(mine)
        if its in (then, mine):
            return mine if have is None else have
        step = self._step(then, its)
        if have is None or step is None:
            return its
        added, removed = step
        return (have - removed) | added

    def _adds(self, mine: File, its: File, then: File, *, wins: bool) -> bool:
        if its in (then, mine):
            return False
        if mine == then or not mine.mode == its.mode == then.mode:
            return True
        have, step = self._text(mine), self._step(then, its)
        if have is None or step is None:
            return True
        added, removed = step
        if not have.isdisjoint(removed) or not (added or removed):
            return True
        return len(added - have) > (0 if wins else len(removed))

    def _step(self, old: File, new: File) -> tuple[Lines, Lines] | None:
        """The lines that a version has and an earlier one has not, and the other way round; None if one is no text."""
        before, after = self._text(old), self._text(new)
        if before is None or after is None:
            return None
        if (old.blob, new.blob) not in self._steps:
            if len(self._steps) >= MOST_STEPS:
                self._steps = {}
            self._steps[old.blob, new.blob] = after - before, before - after
        return self._steps[old.blob, new.blob]

    def _text(self, file: File) -> Lines | None:
        """The lines of a file; None for what is none, or too large to look into."""
        if file.mode not in PLAIN:
            return None
        if file.blob not in self._lines:
            found = self._read(file.blob)
            self._held += len(found or ())
            if self._held > MOST_LINES:
                self._lines = {}
                self._held = len(found or ())
            self._lines[file.blob] = found
        return self._lines[file.blob]

    def _read(self, blob: str) -> Lines | None:
        trees = self.anatomy.repository.trees
        if trees.size(blob) > LARGEST:
            return None
        lines = trees.blob(blob).split(b"\n")
        return frozenset(lines) if len(lines) <= LONGEST else None

    def is_new(self, history: History, operator: Crossing, parents: tuple[str, str], strategy: str) -> bool:
        """Whether two candidates make what nobody proposed.

        A coin or a model may settle a conflict as either side has it, so there must be news in both ways.
        """
        sides = (fitter(history, parents),) if strategy in (FITTER, FUNCTION) else SIDES
        try:
            found = draft(self.anatomy.repository, history, operator, parents)
            settled = FUNCTION if strategy == FUNCTION and found.conflicts else FITTER
            trees = [self._tree(operator, parents, settled, side, found, history) for side in sides]
            return not any(not tree or is_known(history, tree) for tree in trees)
        except UnfitChangeError:
            return False
        except RepositoryError:  # whoever makes it says what is missing
            return True

    def _tree(
        self,
        operator: Crossing,
        parents: tuple[str, str],
        strategy: str,
        side: Side,
        found: UnsettledMerge,
        history: History,
    ) -> str:
        """The merged tree; empty where it has definitions twice."""
        key = operator, parents, strategy, side
        if key not in self._trees:
            if len(self._trees) >= MOST_TREES:
                self._trees = {}
            repository = self.anatomy.repository
            tree = repository.merger.merge(found, settler(repository.merger, strategy, side, random.Random(0))).tree
            try:
                refuse_repeats(repository.trees, tree, *(history.phylogeny[parent].tree for parent in parents))
            except UnfitChangeError:
                tree = ""
            self._trees[key] = tree
        return self._trees[key]


def is_known(history: History, tree: str) -> bool:
    """Whether a tree was proposed before, as far as a deterministic run may know."""
    known = history.trees.get(tree)
    return known is not None and history.attempts.is_known(history.phylogeny[known])
