"""The state of a run as it was read last, so that a command reads what came since and not the whole journal.

It is a copy, not a source: it can be behind, but not wrong, as it is bound to the journals' entries, to the code that
made it and, by a key of this user's outside the repository, to all of its content. One that came with a folder of
somebody else's is not read.
"""

from __future__ import annotations

import hmac
import json
import os
import zlib
from contextlib import suppress
from dataclasses import fields
from functools import cache, partial
from itertools import accumulate
from pathlib import Path
from typing import get_type_hints

from msgspec.structs import asdict

import evogit.core
from evogit.config.names import state_folder
from evogit.core import RepositoryError
from evogit.history.columns import Known, Texts, codec
from evogit.history.history import History
from evogit.history.pages import Content
from evogit.repository import Position, Repository
from evogit.repository.run_keys import kept

LEAST = 500
"""Entries that are not worth the writing."""

SHARE = 0.02
"""New entries, of those that are there, that are worth it: all but the pages is written again."""

DIGITS = 40
"""Digits of an id."""


def load(repository: Repository, run: str) -> tuple[History, Position] | None:
    """The state of a run and the entries that it holds; None where there is none that can be used.

    The file stays where it is: of what it holds, parts and pages are read when they are asked for.
    """
    content, key = repository.snapshot(run).read(), key_of(run)
    head, rest = bytes(content[:HEAD]), content[HEAD:]
    if not key or not hmac.compare_digest(head, _head(key, _code(), rest)):
        return None
    size = int.from_bytes(rest[:8])
    about = json.loads(bytes(rest[8 : 8 + size]))
    sections = _sections(rest[8 + size :], about["sizes"])
    ids, parts, pages = sections[0], sections[1 : len(about["parts"]) + 1], sections[len(about["parts"]) + 1 :]
    known, kinds = Known([], _ids(ids), pages), get_type_hints(History)
    state = {
        name: cache(partial(known.decoded, codec(kinds[name]), part))
        for name, part in zip(about["parts"], parts, strict=True)
    }
    return History.stored(run, state), Position(**about["position"])


def save(repository: Repository, history: History, position: Position) -> None:
    """Write the state that these entries make, in the place of an earlier one; nothing where this user has no key."""
    if not (key := key_of(history.run)):
        return
    pages: list[Content] = []
    kinds, phylogeny = get_type_hints(History), history.phylogeny
    parts = {
        each.name: Texts(phylogeny.numbers, pages).encoded(codec(kinds[each.name]), getattr(history, each.name))
        for each in fields(History)
    }
    sections = [bytes.fromhex("".join(phylogeny.ids)), *parts.values(), *pages]
    about = {"position": asdict(position), "parts": list(parts), "sizes": list(map(len, sections))}
    told = json.dumps(about, separators=(",", ":")).encode()
    rest = [len(told).to_bytes(8), told, *sections]
    repository.snapshot(history.run).write([_head(key, _code(), *rest), *rest])


def worth_it(before: int, now: int) -> bool:
    """Whether so many entries, of which a snapshot has some, are worth another one."""
    return now - before >= max(LEAST, SHARE * before)


def _sections(content: memoryview, sizes: list[int]) -> list[memoryview]:
    ends = list(accumulate(sizes))
    return [content[end - size : end] for end, size in zip(ends, sizes, strict=True)]


def _ids(content: memoryview) -> list[str]:
    digits = content.hex()
    return [digits[at : at + DIGITS] for at in range(0, len(digits), DIGITS)]


def _head(key: bytes, code: int, *rest: Content) -> bytes:
    """The beginning of the file, which only this user can make."""
    digest = hmac.new(key, digestmod="sha256")
    for each in rest:
        digest.update(each)
    return b"evogit snapshot %08x %s\n" % (code, digest.hexdigest().encode())


@cache
def key_of(run: str) -> bytes:
    """The key for snapshots of runs of this name, made of this user's own; empty where that cannot be kept."""
    with suppress(RepositoryError):
        own = kept(state_folder(os.environ) / "input-key")
        return hmac.digest(own, f"evogit snapshot {run}".encode(), "sha256")
    return b""


@cache
def _code() -> int:
    """A checksum of what folds entries: another version, which may count otherwise, believes none of this one's."""
    files = [Path(evogit.core.__file__), *sorted(Path(__file__).parent.glob("*.py"))]
    return zlib.crc32(b"".join(each.read_bytes() for each in files))


HEAD = len(_head(b"", 0))
"""Bytes before what the checksum is of."""
