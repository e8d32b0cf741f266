"""The state of a run as it was read last, so that a command reads what came since and not the whole journal.

It is a copy, not a source: it can be behind, but not wrong, as it is bound to the journals' entries, to the code that
made it and to a checksum over all of it.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import fields
from functools import cache, partial
from pathlib import Path
from typing import Any, get_type_hints

import evogit.core
from evogit.history.columns import Column, Texts, codec
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
    kinds, state = get_type_hints(History), told["state"]
    parts = {name: cache(partial(_decoded, kinds[name], part, told["texts"])) for name, part in state.items()}
    return History.stored(run, parts), Position(
        tips=told["tips"], seq=told["seq"], host=told["host"], entries=told["entries"]
    )


def save(repository: Repository, history: History, position: Position) -> None:
    """Write the state that these entries make, in the place of an earlier one."""
    texts = Texts()
    kinds = get_type_hints(History)
    state = {each.name: _encoded(kinds[each.name], getattr(history, each.name), texts) for each in fields(History)}
    about = {"tips": position.tips, "seq": position.seq, "host": position.host, "entries": position.entries}
    told = {**about, "texts": texts.table(), "state": state}
    rest = _json(told).encode()
    repository.snapshot(history.run).write(_head(rest) + b"\n" + rest)


def worth_it(before: int, now: int) -> bool:
    """Whether so many entries, of which a snapshot has some, are worth another one."""
    return now - before >= max(LEAST, SHARE * before)


def _encoded(kind: Any, value: Any, texts: Texts) -> str:
    """A part of the state as a text in a text, so that it need not be read with the others."""
    return _json(codec(kind).encode([value], texts))


def _decoded(kind: Any, told: str, texts: Column) -> Any:
    return codec(kind).decode(json.loads(told), 1, texts)[0]


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _head(rest: bytes) -> bytes:
    return b"evogit snapshot %08x %08x" % (_code(), zlib.crc32(rest))


@cache
def _code() -> int:
    """A checksum of what folds entries: another version, which may count otherwise, believes none of this one's."""
    files = [Path(evogit.core.__file__), *sorted(Path(__file__).parent.glob("*.py"))]
    return zlib.crc32(b"".join(each.read_bytes() for each in files))
