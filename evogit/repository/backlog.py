"""The records of a chain between its end, where reading begins, and its beginning, where what they say begins."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

Record = tuple[str, str, int, str]
"""A commit: its id, its committer, when (seconds since the epoch), and its message. None holds a zero byte."""

Raw = tuple[bytes, bytes, int, bytes]
"""The same as it is stored."""

CHUNK = 2000
"""Records that are compressed together."""


class Backlog:
    """Records that come newest first and go oldest first, which can be done once; long ones wait compressed.

    Those of a million candidates take gigabytes as they are, and an eighth of that so.
    """

    def __init__(self) -> None:
        self._waiting: list[Raw] = []
        self._packed: list[bytes] = []

    def __len__(self) -> int:
        return len(self._packed) * CHUNK + len(self._waiting)

    def add(self, record: Raw) -> None:
        """Take in the one before the last that came."""
        self._waiting.append(record)
        if len(self._waiting) == CHUNK:
            text = b"\0".join([b"%b\0%b\0%d\0%b" % each for each in self._waiting])
            self._packed.append(zlib.compress(text, 1))
            self._waiting = []

    def __iter__(self) -> Iterator[Record]:
        for raw in reversed(self._waiting):
            yield _text(raw[0]), _text(raw[1]), raw[2], _text(raw[3])
        self._waiting = []
        while self._packed:
            parts = _text(zlib.decompress(self._packed.pop())).split("\0")
            while parts:
                name, who, when, message = parts[-4:]
                del parts[-4:]
                yield name, who, int(when), message


def _text(raw: bytes) -> str:
    """What is stored as UTF-8, which all of ours is; a stranger may claim an encoding that nobody knows."""
    return raw.decode(errors="replace")
