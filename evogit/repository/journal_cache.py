"""A disposable copy of what was read of a journal, which is much quicker to read than Git's objects.

Entries never change once they are written, so a copy can be damaged or behind, but not wrong. It lies beside the refs
and is only ever replaced as a whole. Nothing in it is believed without its checksum; what cannot be used is ignored.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import zlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import get_args
from urllib.parse import quote

from evogit.core import Cost, Entry, Evaluation, Event, Metric
from evogit.repository import records

LAYOUT = repr([(kind.__name__, kind.__annotations__) for kind in (*get_args(Event), Evaluation, Cost, Metric)])
HEAD = b"evogit journal cache 1 %08x\n" % zlib.crc32(LAYOUT.encode())
"""The first line: a version with other records does not read these."""

LEAST = 500
"""Entries that are not worth the writing."""

SHARE = 0.02
"""New entries, of those that are there, that are worth it: all is written again for each addition."""


def forget_journals(common: Path, run: str) -> None:
    """Remove the copies of a run's journals."""
    shutil.rmtree(_folder(common, run), ignore_errors=True)
    with suppress(OSError):
        _folder(common, run).parent.rmdir()


def _folder(common: Path, run: str) -> Path:
    return common / "evogit" / "cache" / run


class JournalCache:
    """The entries of one host's journal as lines of JSON, each with a checksum and a part of the chain."""

    def __init__(self, common: Path, run: str, host: str) -> None:
        self._file = _folder(common, run) / quote(host, safe="")
        self._lines: list[bytes] = []
        self._checksum = 0
        self._amount = 0

    def load(self) -> list[Entry]:
        """The entries, oldest first, as far as they can be used."""
        try:
            content = self._file.read_bytes()
        except OSError:
            return []
        if not content.startswith(HEAD):
            return []
        found = list[Entry]()
        for line in content[len(HEAD) :].splitlines(keepends=True):
            checksum, _, text = line.rstrip(b"\n").partition(b" ")
            if checksum != self._checked(text):
                break
            found += _entries(text)
            self._checksum = int(checksum, 16)
            self._lines.append(line)
        self._amount = len(found)
        return found

    def forget(self) -> None:
        """Begin anew, as what is there belongs to another chain."""
        self._lines = []
        self._checksum = 0
        self._amount = 0

    def _checked(self, text: bytes) -> bytes:
        """The checksum of one more line, which is that of all before it, too: so none can be missing or twice there."""
        return b"%08x" % zlib.crc32(text, self._checksum)

    def add(self, entries: Sequence[Entry]) -> None:
        """Write down the entries that follow on those that are there, if they are worth it and the folder allows."""
        if len(entries) < max(LEAST, SHARE * self._amount):
            return
        with suppress(OSError):  # a full disk, or a repository of somebody else's
            self._file.parent.mkdir(parents=True, exist_ok=True)
            number, passing = tempfile.mkstemp(dir=self._file.parent)
            try:
                with os.fdopen(number, "wb") as file:
                    text = _text(entries)
                    file.writelines((HEAD, *self._lines, self._checked(text), b" ", text, b"\n"))
                Path(passing).replace(self._file)
            finally:
                Path(passing).unlink(missing_ok=True)


def _text(entries: Sequence[Entry]) -> bytes:
    rows = [[each.id, each.host, each.seq, each.time, records.fields_of(each.event)] for each in entries]
    return json.dumps(rows, separators=(",", ":")).encode()


def _entries(text: bytes) -> list[Entry]:
    return [
        Entry(id=commit, host=host, seq=seq, time=time, event=records.known_event(fields))
        for commit, host, seq, time, fields in json.loads(text)
    ]
