"""The pieces of a file that can be exchanged one by one: the statements at the top of a Python module, by name."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Mapping

from evogit.source.definitions import LINE, defined, statements, syntax

LARGEST = 64 * 1024
"""Bytes of a module that is taken apart: parsing takes about 1 ms for 3 kB, and the engine waits for it."""

WHOLE = ""
"""The name of the only piece of a file that is not taken apart."""

Versions = Mapping[str, str]
"""Name of a piece -> a digest of its text, in their order in the file."""


def is_python(path: str) -> bool:
    """Whether the name of a file says that it is a Python module."""
    return path.endswith((".py", ".pyi"))


def split(path: str, content: bytes) -> Mapping[str, str]:
    """Name -> text of each statement at the top of a module, with what stands above it; together they are the file.

    A definition or a constant goes by its name, another statement by its kind, the second of a name by `NAME#2`. A file
    that is not Python, is large or cannot be parsed has one piece, `WHOLE`.
    """
    text = content.decode(errors="surrogateescape")
    whole = {WHOLE: text}
    if not is_python(path) or len(content) > LARGEST:
        return whole
    try:
        groups = statements(syntax(content.decode()).body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return whole
    lines, at = LINE.findall(text), 0
    found: dict[str, str] = {}
    met = Counter[str]()
    for group in groups:
        end = len(lines) if group is groups[-1] else group[-1].end_lineno or at
        name = defined(group) or type(group[0]).__name__.lower()
        met[name] += 1
        found[name if met[name] == 1 else f"{name}#{met[name]}"] = "".join(lines[at:end])
        at = end
    return found or whole


def versions(path: str, content: bytes) -> Versions:
    """What each piece of a file is, such that pieces with equal digests are the same."""
    return {name: digest(text.encode(errors="surrogateescape")) for name, text in split(path, content).items()}


def digest(content: bytes) -> str:
    """16 hex digits."""
    return hashlib.blake2b(content, digest_size=8).hexdigest()


def differing(before: Versions, after: Versions) -> frozenset[str]:
    """The pieces that differ; `WHOLE` where the files do not have the same pieces in the same order."""
    if list(before) != list(after):
        return frozenset({WHOLE})
    return frozenset(name for name in before if before[name] != after[name])


def exchanged(path: str, content: bytes, other: bytes, names: Collection[str]) -> bytes:
    """A file with some of its pieces as another version of it, which has the same pieces, has them."""
    theirs = split(path, other)
    merged = {name: theirs[name] if name in names else text for name, text in split(path, content).items()}
    return "".join(merged.values()).encode(errors="surrogateescape")
