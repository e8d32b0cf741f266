"""The state of a run as it was read last, so that a command reads what came since and not the whole journal.

It is a copy, not a source: it can be behind, but not wrong, as it is bound to the journals' entries, to the code that
made it and to a seal over all of it. The key of the seal is the user's, outside of the repository: an unpacked archive
brings a snapshot along, which may say anything.
"""

from __future__ import annotations

import hmac
import json
import os
import zlib
from dataclasses import fields
from functools import cache, partial
from itertools import accumulate
from pathlib import Path
from typing import get_type_hints

from msgspec.structs import asdict

import evogit.core
from evogit.core import RepositoryError
from evogit.history.history import History
from evogit.history.pages import Content, Known, Texts, codec
from evogit.repository import Position, Repository
from evogit.repository.run_keys import kept
from evogit.trust import state_folder

LEAST = 500  # entries that are not worth the writing
SHARE = 0.02  # new entries, of those that are there, that are worth it: all but the pages is written again
DIGITS = 40  # digits of an id


def load(repository: Repository, run: str) -> tuple[History, Position] | None:
    """The state of a run and the entries that it holds; None where there is none that can be used.

    The file stays where it is: of what it holds, parts and pages are read when they are asked for.
    """
    content = repository.snapshot(run).read()
    head, rest = bytes(content[:HEAD]), content[HEAD:]
    if not head or not (key := _key()) or not hmac.compare_digest(head, _head(key, _code(), rest)):
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
    """Write the state that these entries make, in the place of an earlier one."""
    if not (key := _key()):
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
    """What the file begins with, which is nothing else's beginning."""
    seal = hmac.new(key, digestmod="sha256")
    for each in rest:
        seal.update(each)
    return b"evogit snapshot %08x %b\n" % (code, seal.hexdigest().encode())


def _key() -> bytes:
    """The user's key for snapshots; empty where none can be kept, and there are no snapshots."""
    try:
        return _kept_key(state_folder(os.environ) / "snapshot-key")
    except (RepositoryError, RuntimeError):  # the latter: this user has no home
        return b""


_kept_key = cache(kept)


@cache
def _code() -> int:
    """A checksum of what folds entries: another version, which may count otherwise, believes none of this one's."""
    files = [Path(evogit.core.__file__), *sorted(Path(__file__).parent.glob("*.py"))]
    return zlib.crc32(b"".join(each.read_bytes() for each in files))


HEAD = len(_head(b"", 0))
"""Bytes before what the seal is of."""
