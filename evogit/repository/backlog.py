"""The records of a chain between its end, where reading begins, and its beginning, where what they say begins."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

Record = tuple[str, str, int, str]
"""A commit: its id, its committer, when (seconds since the epoch), and its message. None holds a zero byte."""

CHUNK = 2000
"""Records that are compressed together."""


class Backlog:
    """Records that come newest first and go oldest first, which can be done once; long ones wait compressed.

    Those of a million candidates take gigabytes as they are, and an eighth of that so.
    """

    def __init__(self) -> None:
        self._waiting: list[Record] = []
        self._packed: list[bytes] = []

    def __len__(self) -> int:
        return len(self._packed) * CHUNK + len(self._waiting)

    def add(self, record: Record) -> None:
        """Take in the one before the last that came."""
        self._waiting.append(record)
        if len(self._waiting) == CHUNK:
            text = "\0".join(f"{name}\0{who}\0{when}\0{message}" for name, who, when, message in self._waiting)
            self._packed.append(zlib.compress(text.encode(errors="surrogateescape"), 1))
            self._waiting = []

    def __iter__(self) -> Iterator[Record]:
        while self._waiting or self._packed:
            while self._waiting:
                yield self._waiting.pop()
            if self._packed:
                parts = zlib.decompress(self._packed.pop()).decode(errors="surrogateescape").split("\0")
                self._waiting = list(zip(parts[::4], parts[1::4], map(int, parts[2::4]), parts[3::4], strict=True))
