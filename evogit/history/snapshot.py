"""The state of a run as it was read last, so that a command reads what came since and not the whole journal.

It is a copy, not a source: it can be behind, but not wrong, as it is bound to the journals' entries, to the code that
made it and to a checksum over all of it.
"""

from __future__ import annotations

import json
import zlib
from functools import cache
from pathlib import Path

import evogit.core
from evogit.history.columns import Texts, codec
from evogit.history.history import History
from evogit.repository import Position, Repository

LEAST = 500
"""Entries that are not worth the writing."""

SHARE = 0.02
"""New entries, of those that are there, that are worth it: all is written again."""


def load(repository: Repository, run: str) -> tuple[History, Position] | None:
    """The state of a run and the entries that it holds; None where there is none that can be used."""
    head, _, rest = repository.snapshot(run).read().partition(b"\n")
    if head != _head(rest):
        return None
    told = json.loads(rest)
    state = codec(History).decode(told["state"], 1, told["texts"])[0]
    state.derive()
    return state, Position(tips=told["tips"], seq=told["seq"], host=told["host"], entries=told["entries"])


def save(repository: Repository, history: History, position: Position) -> None:
    """Write the state that these entries make, in the place of an earlier one."""
    texts = Texts()
    state = codec(History).encode([history], texts)
    about = {"tips": position.tips, "seq": position.seq, "host": position.host, "entries": position.entries}
    told = {**about, "texts": texts.table(), "state": state}
    rest = json.dumps(told, separators=(",", ":")).encode()
    repository.snapshot(history.run).write(_head(rest) + b"\n" + rest)


def worth_it(before: int, now: int) -> bool:
    """Whether so many entries, of which a snapshot has some, are worth another one."""
    return now - before >= max(LEAST, SHARE * before)


def _head(rest: bytes) -> bytes:
    return b"evogit snapshot %08x %08x" % (_code(), zlib.crc32(rest))


@cache
def _code() -> int:
    """A checksum of what folds entries: another version, which may count otherwise, believes none of this one's."""
    files = [Path(evogit.core.__file__), *sorted(Path(__file__).parent.glob("*.py"))]
    return zlib.crc32(b"".join(each.read_bytes() for each in files))
