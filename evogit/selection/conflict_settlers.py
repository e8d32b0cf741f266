"""Merges and grafts that ask nobody: what Git can do of them, and what settles their conflicts, by strategy."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Literal

from msgspec.structs import replace

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
)
from evogit.repository.conflicts import Version
from evogit.repository.trees import Trees
from evogit.selection.merge_strategies import FITTER, FUNCTION, RANDOM, STRATEGIES
from evogit.source import MAX_SOURCE_BYTES, definitions
from evogit.source.pieces import MOST_SOURCE_BYTES, is_python
from evogit.subprocesses import TooLongError, python, run_child

SLOW = b"finally"
"""What takes exponential time to compile where it is nested."""


Crossing = Literal["merge", "graft"]
"""A merge takes what two candidates became, a graft one step to the second one, put on the first."""


def draft(repository: Repository, history: History, how: Crossing, parents: tuple[str, ...]) -> UnsettledMerge:
    """The merge of two candidates, or the graft of the second one's change onto the first, as far as Git can.

    Raises:
        UnfitChangeError: the second one is to be grafted, but is a seed.
    """
    graph, (first, second) = history.phylogeny, parents
    if how == "graft" and not graph[second].parents:
        raise UnfitChangeError(f"expected a candidate that changed its parent, but {second[:7]} has none")
    origin = graph.merge_base(first, second) if how == "merge" else graph[second].parents[0]
    base = graph[origin].tree if origin else None
    return repository.merger.draft(base, graph[first].tree, graph[second].tree)


def fitter(history: History, parents: tuple[str, ...]) -> Side:
    """The better parent, the first one of equals."""
    first, second = parents
    return "theirs" if history.fitter(second, first) else "ours"


def refuse_repeats(trees: Trees, merged: str, ours: str, theirs: str) -> None:
    """Refuse a merged tree in which a Python file defines in one body twice what neither side does.

    Lines merge without a conflict where both sides added the same function in different places.

    Raises:
        UnfitChangeError: naming what is there twice.
    """
    its = {new.path: old for old, new in trees.differences(theirs, merged) if new}
    for mine, new in trees.differences(ours, merged):
        if new is None or new.path not in its or not is_python(new.path) or trees.size(new.blob) > MAX_SOURCE_BYTES:
            continue
        twice = definitions.repeated(trees.blob(new.blob))
        for side in filter(None, (mine, its[new.path])) if twice else ():
            twice -= definitions.repeated(trees.blob(side.blob))
        if twice:
            raise UnfitChangeError(f"the merge of {new.path} defines {min(twice)} twice")


def drop_dead(trees: Trees, drafted: UnsettledMerge, merged: Merged) -> Merged:
    """Leave out definitions of a merge by definitions that only one side added and no file names."""
    conflicts, entries = {each.path: each for each in drafted.conflicts}, dict[str, Version | None]()
    for settled in merged.settled:
        version = settled.entries.get(settled.path)
        if settled.how != FUNCTION or version is None:
            continue
        conflict = conflicts[settled.path]
        sides = [side.get(settled.path) for side in (conflict.base, conflict.ours, conflict.theirs)]
        content, *texts = (trees.blob(each.blob) if each else b"" for each in (version, *sides))
        if _is_quick([content, *texts]):
            kept = definitions.without_unnamed(content, texts, naming(trees, merged.tree, settled.path))
            entries |= {settled.path: Version(version.mode, trees.write_blob(kept))} if kept != content else {}
    return replace(merged, tree=trees.with_entries(merged.tree, entries)) if entries else merged


def naming(trees: Trees, tree: str, path: str) -> Callable[[str], bool]:
    """Return a function that says whether a file of a tree other than `path` has a word; large files are left out."""
    files = [entry.blob for entry in trees.entries(tree) if entry.is_file and entry.path != path]
    small = [blob for blob in files if trees.size(blob) <= MAX_SOURCE_BYTES]
    return cache(lambda word: any(re.search(rf"\b{word}\b".encode(), trees.blob(blob)) for blob in small))


def refuse_rewrites(repository: Repository, before: str, onto: str, tree: str) -> None:
    """Refuse to put a change on another tree line by line if it rewrote most of a file that the other one changed.

    Raises:
        UnfitChangeError: naming the file.
    """
    changed = {*repository.changed_paths(before, onto)}
    rewritten = [(path, removed) for path, _, removed in repository.line_changes(before, tree) if path in changed]
    contents = repository.trees.files(before, {path for path, _ in rewritten}.__contains__) if rewritten else {}
    for path, removed in rewritten:
        if path in contents and 2 * removed > len(contents[path].splitlines()):
            raise UnfitChangeError(f"expected a change of lines of {path}, got most of it written anew")


def settler(merger: Merger, strategy: str, better: Side, rng: random.Random) -> Settler:
    """What settles conflicts by `strategy` (empty: the fitter's hunk), where the side `better` is the fitter parent.

    Raises:
        UsageError: there is no such strategy.
    """
    always: Choose = lambda: better  # noqa: E731
    rules: Mapping[str, Settler] = {
        "": partial(merger.settle, choose=always, how=FITTER),
        FITTER: partial(merger.settle, choose=always, how=FITTER),
        RANDOM: partial(merger.settle, choose=lambda: rng.choice(("ours", "theirs")), how=RANDOM),
        FUNCTION: partial(_by_definition, merger, better, _Room()),
    }
    if strategy not in rules:
        raise UsageError(f"expected a strategy of {', '.join(STRATEGIES)}, got {strategy!r}")
    return rules[strategy]


def rebaser(merger: Merger) -> Settler:
    """Settles conflicts of a change that is put on another candidate: whole definitions, those that it changed win.

    It raises `UnfitChangeError` for what is no Python, or would not compile.
    """
    return partial(_rebase, merger, _Room())


def _rebase(merger: Merger, room: _Room, conflict: Conflict) -> Settlement:
    texts = merger.texts(conflict)
    if texts is not None and conflict.path.endswith((".py", ".pyi")) and room.takes(texts):
        ours, base, theirs = texts
        if found := _merge_definitions(base, theirs, ours):
            return merger.settled(conflict, *found, lambda: "theirs", FUNCTION)
    raise UnfitChangeError(f"both sides changed the same part of {conflict.path}")


@dataclass(slots=True)
class _Room:
    """How much may still be taken apart in one merge."""

    left: int = 3 * MOST_SOURCE_BYTES
    """Bytes of base and sides."""

    def takes(self, versions: Sequence[bytes]) -> bool:
        """Whether base and sides fit in; if they do, they are taken in. What is slow fills all that is left."""
        size = sum(map(len, versions))
        if size > self.left:
            return False
        self.left -= size if _is_quick(versions) else self.left
        return True


def _by_definition(merger: Merger, better: Side, room: _Room, conflict: Conflict) -> Settlement:
    """Settle a Python file by whole definitions; of what is none, or would not compile, take the fitter's file."""
    texts = merger.texts(conflict)
    if texts is None:
        return merger.settle(conflict, lambda: better, FITTER)
    if conflict.path.endswith((".py", ".pyi")):
        ours, base, theirs = texts if better == "ours" else texts[::-1]
        if room.takes(texts) and (found := _merge_definitions(base, ours, theirs)):
            return merger.settled(conflict, *found, lambda: better, FUNCTION)
    return Settlement(conflict.path, "lines", FITTER, 1, conflict.taken(better))


def _is_quick(versions: Sequence[bytes]) -> bool:
    return all(len(version) <= MAX_SOURCE_BYTES and SLOW not in version for version in versions)


def _merge_definitions(*versions: bytes) -> tuple[bytes, int] | None:
    """What `definitions.merge_definitions` makes of base, fitter and other.

    Python needs very long for some modules; what could be such a one goes to a process that a candidate may ruin.
    """
    if _is_quick(versions):
        return definitions.merge_definitions(*versions)
    lengths = " ".join(str(len(version)) for version in versions).encode()
    command = python("-S", definitions.__file__, isolated=True)
    try:
        done = run_child(command, seconds=definitions.SECONDS, env={}, stdin=b"\n".join([lengths, b"".join(versions)]))
    except TooLongError:
        return None
    count, newline, merged = done.stdout.partition(b"\n")
    return (merged, int(count)) if newline and done.returncode == 0 else None
