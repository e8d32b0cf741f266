"""Merges and grafts of candidates: what is put on what, and the strategies by which conflicts are settled."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

from evogit.core import UsageError
from evogit.history import History
from evogit.repository import (
    Choose,
    Conflict,
    Merged,
    Merger,
    Repository,
    Settlement,
    Settler,
    Side,
    UnfitChangeError,
    UnsettledMerge,
    count_markers,
)
from evogit.selection.strategies import FITTER, FUNCTION, MODEL, RANDOM, STRATEGIES
from evogit.source import definitions
from evogit.source.pieces import LARGEST

SLOW = b"finally"
"""What takes exponential time to compile where it is nested."""

Crossing = Literal["merge", "graft"]
"""A merge takes what two candidates became, a graft one step to the second one, put on the first."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A merge whose conflicts in texts are left to somebody: they stand in `merged` between markers.

    `markers` are the paths that have such, and of how many characters each of their markers is.
    """

    merged: Merged
    markers: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Crossings:
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
        settle = settler(self.repository.merger, strategy, self.fitter(parents), rng)
        merged = self.repository.merger.merge(self.draft(how, parents), settle)
        self.check(parents[0], merged.tree)
        return merged

    def open(self, how: Crossing, parents: tuple[str, ...]) -> Opened:
        """The same with markers where both sides changed a text; whatever else is in conflict the fitter wins.

        Raises:
            UnfitChangeError: there is no such tree that could be a candidate.
        """
        markers: dict[str, int] = {}
        settle = partial(_marked, self.repository.merger, self.fitter(parents), markers)
        merged = self.repository.merger.merge(self.draft(how, parents), settle)
        self.check(parents[0], merged.tree)
        return Opened(merged, markers)

    def close(self, first: str, opened: Opened, tree: str) -> None:
        """Refuse a tree in which one of the conflicts is still open, or that could be no candidate.

        Raises:
            UnfitChangeError: saying why.
        """
        files = self.repository.trees.lazily(tree, opened.markers.__contains__)
        for path, size in opened.markers.items():
            if path in files and count_markers(files[path], size):
                raise UnfitChangeError(f"expected every conflict to be settled, but {path} still has markers")
        self.check(first, tree)

    def fitter(self, parents: tuple[str, ...]) -> Side:
        """The better parent, the first one of equals; asked before anything is awaited, as evaluations come in."""
        first, second = parents
        return "theirs" if self.history.fitter(second, first) else "ours"

    def draft(self, how: Crossing, parents: tuple[str, ...]) -> UnsettledMerge:
        """The merge of two candidates, or the graft of the second one's change onto the first, as far as Git can.

        Raises:
            UnfitChangeError: the second one is to be grafted, but is a seed.
        """
        merger, (first, second) = self.repository.merger, parents
        if how == "merge":
            return merger.draft(first, second)
        graph = self.history.phylogeny
        if not graph[second].parents:
            raise UnfitChangeError(f"expected a candidate that changed its parent, but {second[:7]} has none")
        origin = graph[second].parents[0]
        return merger.graft(graph[origin].tree, graph[first].tree, graph[second].tree)

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


def settler(merger: Merger, strategy: str, fitter: Side, rng: random.Random) -> Settler:
    """What settles conflicts by `strategy` (empty: the fitter's hunk), where the side `fitter` is the better parent.

    Raises:
        UsageError: there is no such strategy.
    """
    always: Choose = lambda: fitter  # noqa: E731
    rules: Mapping[str, Settler] = {
        "": partial(merger.settle, choose=always, how=FITTER),
        FITTER: partial(merger.settle, choose=always, how=FITTER),
        RANDOM: partial(merger.settle, choose=lambda: rng.choice(("ours", "theirs")), how=RANDOM),
        FUNCTION: partial(_by_definition, merger, fitter),
    }
    if strategy not in rules:
        raise UsageError(f"expected a strategy of {', '.join(STRATEGIES)}, got {strategy!r}")
    return rules[strategy]


def _marked(merger: Merger, fitter: Side, markers: dict[str, int], conflict: Conflict) -> Settlement:
    """Leave the conflicts of a text between markers and remember their length; anything else goes to the fitter."""
    texts = merger.texts(conflict)
    if texts is None:
        return merger.settle(conflict, lambda: fitter, FITTER)
    content, size = merger.marked(texts)
    if count := count_markers(content, size) // 4:
        markers[conflict.path] = size
    return merger.settled(conflict, content, count, lambda: fitter, MODEL)


def _by_definition(merger: Merger, fitter: Side, conflict: Conflict) -> Settlement:
    """Settle a Python file by whole definitions; anything else, or what would not compile, by the fitter's hunks."""
    texts = merger.texts(conflict)
    if texts is not None and conflict.path.endswith((".py", ".pyi")):
        ours, base, theirs = texts if fitter == "ours" else texts[::-1]
        if found := _merge_definitions(base, ours, theirs):
            return merger.settled(conflict, *found, lambda: fitter, FUNCTION)
    return merger.settle(conflict, lambda: fitter, FITTER)


def _merge_definitions(*versions: bytes) -> tuple[bytes, int] | None:
    """What `definitions.merge_definitions` makes of base, fitter and other.

    Python needs very long for some modules; what could be such a one goes to a process that a candidate may ruin.
    """
    if all(len(version) <= LARGEST and SLOW not in version for version in versions):
        return definitions.merge_definitions(*versions)
    done = subprocess.run(
        [sys.executable, "-I", "-S", definitions.__file__],
        input=b"\n".join([" ".join(str(len(version)) for version in versions).encode(), b"".join(versions)]),
        capture_output=True,
        env={},
        start_new_session=True,
        check=False,
    )
    count, newline, merged = done.stdout.partition(b"\n")
    return (merged, int(count)) if newline and done.returncode == 0 else None
