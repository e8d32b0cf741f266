"""A change between two trees taken apart into hunks, any selection of which makes a tree again."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import Any, cast

import pygit2
from msgspec import Struct

from evogit.core import RepositoryError
from evogit.repository.diff_limits import Room
from evogit.repository.faults import found_tree
from evogit.repository.paths import UnfitChangeError
from evogit.repository.trees import GITLINK, TreeEntry, Trees, deltas_of, sides


class ComparedFile(Struct, frozen=True):
    """A file that differs: `patch` is None where it is too large to compare, or where there is no more room for it."""

    path: str
    delta: pygit2.DiffDelta
    patch: pygit2.Patch | None
    size: Callable[[], int]  # bytes before and after, together

    @property
    def text(self) -> bytes:
        """The change as a patch, or a sentence in its place."""
        if self.patch is not None:
            return self.patch.data
        name = self.path if self.path.isprintable() else ascii(self.path)
        told = f"diff --git a/{name} b/{name}\nchanged, {self.size():,} bytes before and after, too much to show\n"
        return told.encode(errors="replace")

    @property
    def status(self) -> str:
        """The kind of change: `modified`, `added`, `deleted`, `renamed` or another of Git's words."""
        return self.delta.status.name.lower()

    @property
    def note(self) -> str:
        """Why no lines are told of it; empty where they are."""
        if self.patch is None:
            return f"{self.size():,} bytes before and after, too much to show"
        return "binary" if self.delta.is_binary else ""

    @property
    def hunks(self) -> Iterator[tuple[str, list[tuple[str, str]]]]:
        """The header of each hunk, and its lines: a sign (` `, `+`, `-`) and the text."""
        for hunk in self.patch.hunks if self.patch else ():
            lines = [(line.origin, line.raw_content.decode(errors="replace").rstrip("\n")) for line in hunk.lines]
            yield hunk.header.strip(), [(sign, text) for sign, text in lines if sign in " +-"]


def compare(
    repo: pygit2.Repository,
    trees: Trees,
    old: str,
    new: str,
    wanted: Callable[[str], bool] = lambda path: True,
    **options: Any,
) -> Iterator[ComparedFile]:
    """Yield the wanted files that differ; `options` go to `diff_to_tree`. Raises RepositoryError: Git can't compare."""
    diff, room = found_tree(repo, old).diff_to_tree(found_tree(repo, new), **options), Room(trees)
    for number, delta in enumerate(deltas_of(diff)):
        path = os.fsdecode(delta.new_file.raw_path)
        if not wanted(path):
            continue
        before, after = (side.blob if side and side.mode != GITLINK else "" for side in sides(delta))
        fits = room.takes((before, after))
        try:
            patch = diff[number] if fits else None
        except pygit2.GitError as error:
            raise RepositoryError(f"cannot compare {path!r}: {error}; see `git fsck`") from error
        yield ComparedFile(path, delta, patch, partial(_size, trees, (before, after)))


def _size(trees: Trees, blobs: Sequence[str]) -> int:
    return sum(trees.size(blob) for blob in blobs if blob)


LINE = re.compile(rb"[^\n]*\n|[^\n]+")  # what Git takes for a line, its end included


@dataclass(frozen=True, slots=True, order=True)
class Hunk:
    """One separable part of a change to the file `path`."""

    path: str
    start: int = 0  # the line of the old file, counted from 0, from which on
    removed: tuple[bytes, ...] = ()  # lines give way
    added: tuple[bytes, ...] = ()  # to others
    whole: bool = False  # the file as such comes, goes or is replaced, as a binary one is
    mode: bool = False  # its executable bit changes


class _File(Struct, frozen=True):
    old: TreeEntry | None
    new: TreeEntry | None


@dataclass(frozen=True, slots=True)
class Change:
    """The hunks between two trees, in Git's order; as many lines for as many others are as many hunks."""

    base: str
    hunks: tuple[Hunk, ...]
    _files: Mapping[str, _File] = field(repr=False)
    _trees: Trees = field(repr=False)

    def tree(self, chosen: Collection[Hunk]) -> str:
        """The id of the base with the chosen hunks. Raises UnfitChangeError: no tree can hold these alone."""
        contents: dict[str, bytes | None] = {}
        modes: dict[str, int] = {}
        for path, group in groupby(sorted(chosen), key=lambda hunk: hunk.path):
            hunks, file = list(group), self._files[path]
            contents[path] = self._content(file, hunks)
            source = file.new if file.old is None or any(hunk.mode or hunk.whole for hunk in hunks) else file.old
            if source is not None:
                modes[path] = source.mode
        return self._trees.write(self.base, contents, modes)

    def _content(self, file: _File, hunks: Sequence[Hunk]) -> bytes | None:
        if any(hunk.whole for hunk in hunks):
            return self._trees.blob(file.new.blob) if file.new else None
        old = _lines(self._trees, file.old)
        made, position = list[bytes](), 0
        for hunk in hunks:
            if hunk.mode:
                continue
            made += [*old[position : hunk.start], *hunk.added]
            position = hunk.start + len(hunk.removed)
        made += old[position:]
        return b"".join([*(line if line.endswith(b"\n") else line + b"\n" for line in made[:-1]), *made[-1:]])


def take_apart(repo: pygit2.Repository, trees: Trees, old: str, new: str) -> Change:
    """The change between two trees as hunks. Raises UnfitChangeError: they do not make the new tree together."""
    files: dict[str, _File] = {}
    hunks: list[Hunk] = []
    for each in compare(repo, trees, old, new, context_lines=0, interhunk_lines=0):
        file = _File(*sides(each.delta))
        files[each.path] = file
        hunks += _hunks(trees, each.path, file, each.patch)
    change = Change(old, tuple(hunks), files, trees)
    if change.tree(change.hunks) != new:
        raise UnfitChangeError("its parts do not add up: files, folders and links replace each other in it")
    return change


def _hunks(trees: Trees, path: str, file: _File, patch: pygit2.Patch | None) -> Iterator[Hunk]:
    old, new = file.old, file.new
    same = old is not None and new is not None and old.blob == new.blob
    if new is None or patch is None or not same and (patch.delta.is_binary or not patch.hunks):
        yield Hunk(path, whole=True)
        return
    before, after = _lines(trees, old), _lines(trees, new)
    for hunk in patch.hunks:
        start, first = hunk.old_start - (hunk.old_lines > 0), hunk.new_start - (hunk.new_lines > 0)
        removed, added = before[start : start + hunk.old_lines], after[first : first + hunk.new_lines]
        if len(removed) == len(added):
            yield from (Hunk(path, start + i, (removed[i],), (added[i],)) for i in range(len(added)))
        else:
            yield Hunk(path, start, tuple(removed), tuple(added))
    if old and new and old.mode != new.mode:
        yield Hunk(path, mode=True)


def _lines(trees: Trees, entry: TreeEntry | None) -> list[bytes]:
    return LINE.findall(trees.blob(entry.blob)) if entry else []


# --- lines that come and go -----------------------------------------------------------------------------------------

SHORTEST_LINE = 9  # characters of a line that says something of its own: more than `continue`


class ChangedLines(Struct, frozen=True):
    """Lines (path, text without spaces around it) that a change takes out or brings; what it moves is in neither."""

    removed: Counter[tuple[str, bytes]]
    added: Counter[tuple[str, bytes]]


def lines(repo: pygit2.Repository, trees: Trees, old: str, new: str, wanted: Callable[[str], bool]) -> ChangedLines:
    """The lines in which two trees differ, in wanted files that are texts and not too large to compare."""
    removed, added = Counter[tuple[str, bytes]](), Counter[tuple[str, bytes]]()
    for each in compare(repo, trees, old, new, wanted, context_lines=0, interhunk_lines=0):
        for line in (line for hunk in (each.patch.hunks if each.patch else ()) for line in hunk.lines):
            text = line.raw_content.strip()
            if len(text) >= SHORTEST_LINE and line.origin in "+-":
                (added if line.origin == "+" else removed)[each.path, text] += 1
    return ChangedLines(removed - added, added - removed)


def same_lines(repo: pygit2.Repository, trees: Trees, old: str, new: str) -> dict[int, int]:
    """Lines of the blob `new` that the blob `old` has too -> where it has them; none where that takes too long."""
    if not Room(trees).takes((old, new)):
        return {}
    patch = cast(pygit2.Blob, repo[old]).diff(cast(pygit2.Blob, repo[new]))
    if patch.delta.is_binary:
        return {}
    same: dict[int, int] = {}
    before = after = 0
    for hunk in patch.hunks:
        start, first = hunk.old_start - (hunk.old_lines > 0), hunk.new_start - (hunk.new_lines > 0)
        same |= zip(range(after, first), range(before, start), strict=True)
        same |= {line.new_lineno - 1: line.old_lineno - 1 for line in hunk.lines if line.origin == " "}
        before, after = start + hunk.old_lines, first + hunk.new_lines
    rest = len(LINE.findall(trees.blob(new))) - after
    return same | dict(zip(range(after, after + rest), range(before, before + rest), strict=True))
