"""Patches between two trees, with a look at sizes first: how long lines take to compare is up to who wrote them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

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
    size: Callable[[], int]
    """Bytes before and after, together."""

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
        """What happened to the file: `modified`, `added`, `deleted`, `renamed` or another of Git's words."""
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
    """The wanted files in which two commits or trees differ, in Git's order; `options` are those of `diff_to_tree`.

    Raises:
        RepositoryError: Git's index or settings, which say how files are compared, cannot be read.
    """
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
