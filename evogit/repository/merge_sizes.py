"""Whether Git merges three trees in a moment, told by their sizes: the engine waits for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from evogit.repository.diff_limits import MOST_LINES, Room
from evogit.repository.trees import GITLINK, Pair, TreeEntry, Trees

MOST_FILES = 50
"""Files that both sides changed, each of which may cost a process."""

MOST_PAIRS = 10_000
"""Pairs of a file that is gone and a new one that Git may compare to find what was renamed: 3 us each."""


def merge_room(trees: Trees) -> Room:
    """What may be merged line by line at once: two comparisons each."""
    return Room(trees, MOST_FILES, 2 * MOST_LINES)


def is_quick(trees: Trees, base: str | None, ours: str, theirs: str) -> bool:
    """Whether Git is soon through with a merge, whatever is in the files."""
    mine, its = (_changes(trees, base, tree) for tree in (ours, theirs))
    room = merge_room(trees)
    for path in mine.keys() & its.keys():
        (old, here), (_, there) = mine[path], its[path]
        if here != there and not room.takes((_blob(old), _blob(here)), (_blob(old), _blob(there))):
            return False
    return all(_finds_renames(trees, changes.values()) for changes in (mine, its))


def _finds_renames(trees: Trees, changes: Iterable[Pair]) -> bool:
    """Whether there are so few files that Git may take for renamed ones that it is quick about it."""
    gone = {_blob(old) for old, new in changes if new is None}
    fresh = {_blob(new) for old, new in changes if old is None}
    gone, fresh = gone - fresh, fresh - gone  # what is only moved is told by its id
    room = Room(trees, lines=2 * MOST_LINES)
    return len(gone) * len(fresh) <= MOST_PAIRS and (
        not (gone and fresh) or all(room.takes(("", blob)) for blob in gone | fresh)
    )


def _changes(trees: Trees, base: str | None, tree: str) -> Mapping[str, Pair]:
    if base is None:
        return {entry.path: (None, entry) for entry in trees.entries(tree)}
    return {(new or old).path: (old, new) for old, new in trees.differences(base, tree)}  # type: ignore[union-attr]


def _blob(entry: TreeEntry | None) -> str:
    return entry.blob if entry and entry.mode != GITLINK else ""
