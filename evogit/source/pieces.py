"""The pieces of a Python module: the statements at its top, by name."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache

from evogit.source import MAX_SOURCE_BYTES
from evogit.source.definitions import LINE, defined, piece_syntax, statements

MOST_SOURCE_BYTES = 4 * MAX_SOURCE_BYTES  # bytes of all modules of a candidate that are
REMEMBERED = 1024  # parts of modules that are not parsed again, as candidates share most of their text

_BEGINS = re.compile(r"(?!(?:elif|else|except|finally)\b)[^\s#)\]}\\]")
"""A line at which a statement at the top of a module may begin; inside of a string it may look the same."""

WHOLE = ""  # the name of the only piece of a file that is not taken apart


def is_python(path: str) -> bool:
    """Whether the name of a file says that it is a Python module."""
    return path.endswith((".py", ".pyi"))


def split(path: str, content: bytes) -> Mapping[str, str]:
    """Name -> text of each statement at the top of a module, with what stands above it; together they are the file.

    A definition or a constant goes by its name, another statement by its kind, the second of a name by `NAME#2`. A file
    that is not Python, is large or cannot be parsed has one piece, `WHOLE`.
    """
    if not is_python(path) or len(content) > MAX_SOURCE_BYTES:
        return {WHOLE: content.decode(errors="surrogateescape")}
    return _split(content)


@lru_cache(maxsize=64)
def _split(content: bytes) -> Mapping[str, str]:
    """The pieces of a module, which several ask for one after the other."""
    text = content.decode(errors="surrogateescape")
    lines, at = LINE.findall(text), 0
    named, texts = _named(lines), []
    for number, (_, end) in enumerate(named, 1):
        stop = end if number < len(named) else len(lines)
        texts.append("".join(lines[at:stop]))
        at = stop
    met, pieces = Counter[str](), dict[str, str]()
    for (name, _), piece in zip(named, texts, strict=True):
        met[name] += 1
        pieces[name if met[name] == 1 else f"{name}#{met[name]}"] = piece
    return pieces or {WHOLE: text}


def _named(lines: Sequence[str]) -> list[tuple[str, int]]:
    """Name and number of the last line of each statement of a module; nothing where it cannot be parsed.

    What parses by itself is the same in the whole, so that a part which does not is parsed with what follows it.
    """
    starts, found = _starts(lines), list[tuple[str, int]]()
    number, at = 0, 0
    while number < len(starts):
        parts, stop, named = 1, at, None
        while named is None:
            if stop == len(lines):
                return []
            stop = starts[number + parts] if number + parts < len(starts) else len(lines)
            text = "".join(lines[at:stop])
            goes_on = text.rstrip("\r\n").endswith("\\")  # which the parser lets pass at the end of a text
            named = None if stop < len(lines) and goes_on else _parsed(text)
            parts *= 2
        for name, end in named:
            found.append((name, at + end))
        number, at = number + parts // 2, stop
    return found


def _starts(lines: Sequence[str]) -> list[int]:
    """Where parts of a module may begin; a decorator begins what it decorates."""
    starts, is_decorated = list[int](), False
    for number, line in enumerate(lines):
        if _BEGINS.match(line):
            if not is_decorated:
                starts.append(number)
            is_decorated = line.startswith("@")
    return starts or [0]


@lru_cache(maxsize=REMEMBERED)
def _parsed(text: str) -> tuple[tuple[str, int], ...] | None:
    """Name and last line of each statement, those that share a line together; None where it cannot be parsed."""
    try:
        groups = statements(piece_syntax(text).body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return tuple((defined(group) or type(group[0]).__name__.lower(), group[-1].end_lineno or 0) for group in groups)


def digest(content: bytes) -> str:
    """16 hex digits."""
    return hashlib.blake2b(content, digest_size=8).hexdigest()
