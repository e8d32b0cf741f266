"""The difference of two trees: files as patches, lines that come and go, and lines that are the same."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, cast

import pygit2
from msgspec import Struct

from evogit.core import RepositoryError
from evogit.repository.diff_limits import Room
from evogit.repository.faults import found_tree
from evogit.repository.trees import GITLINK, Trees, deltas_of, sides


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
