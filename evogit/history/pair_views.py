"""What a judge of two candidates is shown: what both began from, and what each changed."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from evogit.config import Task
from evogit.history import History
from evogit.repository import Repository

NO_CHANGE = "(no change: this is what both began from)"
"""What a judge is shown in the place of an empty patch."""


class Sides(Struct, frozen=True, kw_only=True):
    """Two candidates as patches of what both began from: its `files` that candidates may change."""

    files: Mapping[str, bytes]
    first: str
    second: str


class Views(Struct, frozen=True):
    """Takes candidates apart for judges; nothing withheld or excluded is in what it gives."""

    repository: Repository
    task: Task
    history: History

    def pair(self, first: str, second: str) -> Sides:
        """Two candidates against the youngest one that both descend from."""
        base = self.history.phylogeny.merge_base(first, second) or self.history.seed or first
        return self._sides(base, first, second)

    def halved(self, *, swapped: bool) -> Sides:
        """The seed and half of it: from every file that may be changed the second half of its lines is cut off."""
        seed = self.history.seed or ""
        trees, tree = self.repository.trees, self.history.phylogeny[seed].tree
        halves: dict[str, bytes | None] = {path: _half(content) for path, content in self._files(tree).items()}
        half = trees.write(tree, halves)
        return self._sides(seed, half, seed) if swapped else self._sides(seed, seed, half)

    def _sides(self, base: str, first: str, second: str) -> Sides:
        patches = (self.repository.diff(base, each, self.task.is_visible) for each in (first, second))
        one, other = patches
        return Sides(files=self._files(self.repository.tree_of(base)), first=one, second=other)

    def _files(self, tree: str) -> Mapping[str, bytes]:
        return self.repository.trees.lazily(tree, self.task.is_editable)


def _half(content: bytes) -> bytes:
    lines = content.splitlines(keepends=True)
    return b"".join(lines[: len(lines) // 2])
