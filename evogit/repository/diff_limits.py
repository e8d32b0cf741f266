"""How much of what candidates wrote is compared line by line: how long that takes is up to who wrote it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from evogit.repository.paths import UnfitChangeError
from evogit.repository.trees import GITLINK, Pair, TreeEntry, Trees

LARGEST = 1_000_000  # bytes of a file whose lines are compared
MOST_BYTES = 4_000_000  # bytes of all files of a comparison, before and after: libgit2 reads 1 MB in 10 ms
MOST_LINES = 20_000  # lines of all of them: 10,000 of one digit and as many others take 25 ms, 100,000 of them 370 ms
MOST_FILES = 200  # files that are compared: each takes 0.1 to 0.2 ms, however small it is
EQUAL = 16  # lines at both ends that two versions share, which take as long as one that may differ


@dataclass(slots=True)
class Room:
    """What may still be compared. Small files that come after a large one may fit in."""

    trees: Trees
    files: int = MOST_FILES
    lines: int = MOST_LINES
    bytes: int = MOST_BYTES

    def takes(self, *pairs: tuple[str, str]) -> bool:
        """Whether these versions of a file fit in, by blobs, empty for none; if they do, they are taken in."""
        if self.files == 0:
            return False
        sizes = [self.trees.size(blob) for pair in pairs for blob in pair if blob]
        if max(sizes, default=0) > LARGEST or sum(sizes) > self.bytes:
            return False
        lines = sum(_lines(*(self.trees.blob(blob) if blob else b"" for blob in pair)) for pair in pairs)
        if lines > self.lines:
            return False
        self.files -= 1
        self.bytes -= sum(sizes)
        self.lines -= lines
        return True


def _lines(old: bytes, new: bytes) -> int:
    """The lines that must be compared; what both begin or end with is soon told, and binary files have none."""
    if b"\0" in old[:8000] or b"\0" in new[:8000]:
        return 0
    both = old.count(b"\n") + new.count(b"\n") + 2
    head = _shared(old, new)
    old, new = old[head:], new[head:]
    tail = _shared(old[::-1], new[::-1])
    differing = old.count(b"\n", 0, len(old) - tail) + new.count(b"\n", 0, len(new) - tail) + 2
    return differing + (both - differing) // EQUAL


def _shared(old: bytes, new: bytes) -> int:
    low, high = 0, min(len(old), len(new))
    while low < high:
        middle = (low + high + 1) // 2
        if old[low:middle] == new[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


MAX_CHANGED_FILES = 500  # files that differ: each takes about 0.1 ms wherever they are listed, packed or compared
MAX_CHANGED_BYTES = 8 << 20  # bytes of what is new or changed in them: libgit2 reads 1 MB in 5 to 10 ms


def check_extent(trees: Trees, seed: str, tree: str, most: int = MAX_CHANGED_BYTES) -> None:
    """Refuse a tree that differs from a seed in too much. Raises UnfitChangeError: saying by how much."""
    found = [new for _, new in trees.differences(seed, tree)]
    size = sum(trees.size(entry.blob) for entry in found if entry and entry.mode != GITLINK)
    if len(found) > MAX_CHANGED_FILES or size > most:
        much = f"{len(found):,} files" if len(found) > MAX_CHANGED_FILES else f"{size:,} bytes"
        raise UnfitChangeError(
            f"expected a candidate that differs from the seed in {MAX_CHANGED_FILES:,} files and {most:,} bytes of "
            f"them at most, got {much}"
        )


MAX_MERGED_FILES = 50  # files that both sides changed, each of which may cost a process
MAX_RENAME_PAIRS = 10_000  # pairs of a file that is gone and a new one that Git may compare: 3 us each


def merge_room(trees: Trees) -> Room:
    """The limits on files merged line by line at once: two comparisons each."""
    return Room(trees, MAX_MERGED_FILES, 2 * MOST_LINES)


def is_quick(trees: Trees, base: str | None, ours: str, theirs: str) -> bool:
    """Return True if Git merges these sizes quickly, whatever the files contain."""
    mine, its = (_changes(trees, base, tree) for tree in (ours, theirs))
    room = merge_room(trees)
    for path in mine.keys() & its.keys():
        (old, here), (_, there) = mine[path], its[path]
        if here != there and not room.takes((_blob(old), _blob(here)), (_blob(old), _blob(there))):
            return False
    return all(_finds_renames(trees, changes.values()) for changes in (mine, its))


def _finds_renames(trees: Trees, changes: Iterable[Pair]) -> bool:
    """Return True if few enough files may be renamed for Git to detect renames quickly."""
    gone = {_blob(old) for old, new in changes if new is None}
    fresh = {_blob(new) for old, new in changes if old is None}
    gone, fresh = gone - fresh, fresh - gone  # what is only moved is told by its id
    room = Room(trees, lines=2 * MOST_LINES)
    return len(gone) * len(fresh) <= MAX_RENAME_PAIRS and (
        not (gone and fresh) or all(room.takes(("", blob)) for blob in gone | fresh)
    )


def _changes(trees: Trees, base: str | None, tree: str) -> Mapping[str, Pair]:
    if base is None:
        return {entry.path: (None, entry) for entry in trees.entries(tree)}
    return {(new or old).path: (old, new) for old, new in trees.differences(base, tree)}  # type: ignore[union-attr]


def _blob(entry: TreeEntry | None) -> str:
    return entry.blob if entry and entry.mode != GITLINK else ""
