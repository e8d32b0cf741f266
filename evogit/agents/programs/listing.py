"""What is in the folder of a program, as whoever looked into it listed it: a stranger, where the program itself did."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, cast

from msgspec import Struct

from evogit.agents import NoUsableChangeError
from evogit.sandbox import FolderEntry
from evogit.sandbox.answers import listed

Kind = Literal["file", "executable", "link", "folder", "other"]

MOST_NAMES = 64 << 20
"""Characters of all paths, each once for every folder that it is in: folders are looked at path by path."""

LENGTH = 4  # bytes, big-endian, that say how long a list is


class Member(Struct, frozen=True):
    """One entry: its path, which need not be a harmless one; the content of a link is its target."""

    path: str
    kind: Kind
    content: memoryview


def members(entries: Iterable[FolderEntry], contents: bytes) -> Iterator[Member]:
    """Entries with their contents, which stand in a row."""
    view, position = memoryview(contents), 0
    for path, kind, size, _ in entries:
        yield Member(path, cast(Kind, kind), view[position : position + size])
        position += size


def read_members(packed: bytes) -> list[Member]:
    """What `sandbox/evaluate.py` packs: the length of a list of entries, the list as JSON, the contents.

    Raises NoUsableChangeError: it is something else, or too much.
    """
    end = LENGTH + int.from_bytes(packed[:LENGTH])
    try:
        found = list(members(listed([packed[LENGTH:end], packed[end:]]), packed[end:]))
    except ValueError as error:
        raise NoUsableChangeError(f"the files cannot be read: {error}") from error
    if sum(len(each.path) * (1 + each.path.count("/")) for each in found) > MOST_NAMES:
        raise NoUsableChangeError("there are too many files in too many folders; remove what is not the candidate's")
    return found
