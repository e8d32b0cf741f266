"""Merges and grafts of candidates: what is put on what, and the strategies by which conflicts are settled."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from functools import partial

from msgspec import Struct

from evogit.history import History
from evogit.repository import (
    Conflict,
    Merged,
    Merger,
    Repository,
    Settlement,
    Side,
    UnfitChangeError,
    count_markers,
)
from evogit.selection import MODEL
from evogit.selection.conflict_settlers import (
    Crossing,
    draft,
    drop_dead,
    fitter,
    rebaser,
    refuse_repeats,
    refuse_rewrites,
    settler,
)
from evogit.selection.merge_strategies import FITTER


class Opened(Struct, frozen=True):
    """A merge whose conflicts in texts are left to an agent: they stand in `merged` between markers.

    `markers` are the paths that have such, and of how many characters each of their markers is.
    """

    merged: Merged
    markers: Mapping[str, int]


class Crossings(Struct, frozen=True):
    """Makes trees of two candidates. What the result changes of the first must be editable, as of any candidate."""

    repository: Repository
    history: History
    is_editable: Callable[[str], bool]

    def cross(self, how: Crossing, parents: tuple[str, ...], strategy: str, rng: random.Random) -> Merged:
        """The merged tree of two candidates, conflicts settled by `strategy`.

        Raises:
            UnfitChangeError: there is no such tree that could be a candidate.
            UsageError: there is no such strategy.
        """
        settle = settler(self.repository.merger, strategy, fitter(self.history, parents), rng)
        drafted = draft(self.repository, self.history, how, parents)
        merged = drop_dead(self.repository.trees, drafted, self.repository.merger.merge(drafted, settle))
        self._check_merged(parents, merged.tree)
        return merged

    def open(self, how: Crossing, parents: tuple[str, ...]) -> Opened:
        """The same with markers where both sides changed a text; whatever else is in conflict the fitter wins.

        Raises:
            UnfitChangeError: there is no such tree that could be a candidate.
        """
        markers: dict[str, int] = {}
        settle = partial(_marked, self.repository.merger, fitter(self.history, parents), markers)
        merged = self.repository.merger.merge(draft(self.repository, self.history, how, parents), settle)
        self._check_merged(parents, merged.tree)
        return Opened(merged, markers)

    def close(self, parents: tuple[str, ...], opened: Opened, tree: str) -> None:
        """Refuse a tree in which one of the conflicts is still open, or that could be no candidate.

        Raises:
            UnfitChangeError: saying why.
        """
        files = self.repository.trees.lazily(tree, opened.markers.__contains__)
        for path, size in opened.markers.items():
            if path in files and count_markers(files[path], size):
                raise UnfitChangeError(f"expected every conflict to be settled, but {path} still has markers")
        self._check_merged(parents, tree)

    def rebased(self, before: str, onto: str, tree: str) -> str:
        """The candidate `onto` with what leads from the candidate `before` to a tree.

        Raises:
            UnfitChangeError: both changed the same lines, the change rewrote a file that `onto` changed, or there is no
                such tree that could be a candidate.
        """
        merger, graph = self.repository.merger, self.history.phylogeny
        drafted = merger.draft(graph[before].tree, graph[onto].tree, tree)
        if drafted.remark:
            raise UnfitChangeError(drafted.remark)
        refuse_rewrites(self.repository, graph[before].tree, graph[onto].tree, tree)
        merged = drop_dead(self.repository.trees, drafted, merger.merge(drafted, rebaser(merger))).tree
        self.check(onto, merged)
        refuse_repeats(self.repository.trees, merged, graph[onto].tree, tree)
        return merged

    def _check_merged(self, parents: tuple[str, ...], tree: str) -> None:
        first, second = (self.history.phylogeny[parent].tree for parent in parents)
        self.check(parents[0], tree)
        refuse_repeats(self.repository.trees, tree, first, second)

    def check(self, first: str, tree: str) -> None:
        """Refuse a tree that no agent could have proposed for the candidate `first`.

        Raises:
            UnfitChangeError: saying why.
        """
        before = self.history.phylogeny[first].tree
        self.repository.trees.refuse_twins(before, tree)
        if wrong := [path for path in self.repository.changed_paths(before, tree) if not self.is_editable(path)]:
            raise UnfitChangeError(f"expected changes to editable files only, got {', '.join(wrong[:5])}")


def title(history: History, how: Crossing, parents: tuple[str, ...], merged: Merged, strategy: str) -> str:
    """What the journal and the log call the result."""
    first, second = parents
    count = merged.conflicts
    settled = f", {count} conflict{'s' * (count > 1)} settled: {strategy or FITTER}" if count else ""
    if how == "merge":
        return f"merge {first[:7]} × {second[:7]}{settled}"
    origin = history.phylogeny[second].parents[0]
    return f"graft {origin[:7]}→{second[:7]} onto {first[:7]}{settled}"


def _marked(merger: Merger, better: Side, markers: dict[str, int], conflict: Conflict) -> Settlement:
    """Leave the conflicts of a text between markers and remember their length; anything else goes to the fitter."""
    texts = merger.texts(conflict)
    if texts is None:
        return merger.settle(conflict, lambda: better, FITTER)
    content, size = merger.marked(texts)
    if count := count_markers(content, size) // 4:
        markers[conflict.path] = size
    return merger.settled(conflict, content, count, lambda: better, MODEL)
