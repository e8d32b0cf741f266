"""How much of what candidates wrote is compared line by line: how long that takes is up to who wrote it."""

from __future__ import annotations

from dataclasses import dataclass

from evogit.repository.trees import Trees

LARGEST = 1_000_000
"""Bytes of a file whose lines are compared."""

MOST_BYTES = 4_000_000
"""Bytes of all files of a comparison, before and after: libgit2 reads 1 MB in 10 ms."""

MOST_LINES = 20_000
"""Lines of all of them: 10,000 lines of one digit and as many others take libgit2 25 ms, and 100,000 of them 370 ms."""

MOST_FILES = 200
"""Files that are compared: each takes 0.1 to 0.2 ms, however small it is."""

EQUAL = 16
"""Lines at both ends that two versions share, which take as long as one that may differ."""


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
    """How many bytes two contents begin with alike."""
    low, high = 0, min(len(old), len(new))
    while low < high:
        middle = (low + high + 1) // 2
        if old[low:middle] == new[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
