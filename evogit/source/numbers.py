"""The numbers of a program: where they stand, what two versions changed of them, and how one is moved.

Numbers in comments, strings and prose are no numbers here, nor are parts of names, versions, dates and ranges.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from operator import itemgetter
from pathlib import PurePosixPath
from typing import NamedTuple

from evogit.source import MAX_SOURCE_BYTES
from evogit.source.pieces import digest

PROSE = {"", ".md", ".rst", ".txt", ".adoc", ".org", ".tex", ".html", ".csv", ".tsv", ".po", ".svg"}
"""Suffixes of files whose numbers are left alone."""

HASH_COMMENTS = {".py", ".pyi", ".pyw", ".sh", ".toml", ".yaml", ".yml", ".ini", ".cfg", ".r", ".jl", ".rb"}
"""Suffixes of files in which # begins a comment; in others // and /* do."""

_STRINGS = (
    rb"\"{3}[^\"\\]*(?:(?:\\.|\"(?!\"\"))[^\"\\]*)*(?:\"{3}|\Z)|'{3}[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*(?:'{3}|\Z)"
    rb"|\"[^\"\\\n]*(?:\\.[^\"\\\n]*)*\"|'[^'\\\n]*(?:\\.[^'\\\n]*)*'"
)
_NUMBER = rb"\d{1,30}(?:\.\d{0,30})?(?:[eE][+-]?\d{1,3})?(?![\w.\x80-\xff])"
_TOKENS = {
    is_hash: re.compile(_STRINGS + rb"|" + comment + rb"|" + _NUMBER, re.DOTALL)
    for is_hash, comment in ((True, rb"#[^\n]*"), (False, rb"//[^\n]*|/\*.*?(?:\*/|\Z)"))
}
"""Strings, comments and numbers, by whether # begins a comment."""

_TOPS = re.compile(rb"^(?:([A-Za-z_\x80-\xff][\w\x80-\xff]*)[ \t]*(?::[^=\n]+)?=(?!=)|[^\s#)\]}\d'\"])", re.MULTILINE)
"""The beginning of a statement at the top of a module, with the name that it assigns to."""

_PART, _OCTAL = re.compile(rb"[\w.\x80-\xff]"), re.compile(rb"0\d")
"""A byte before which a digit begins no number, and the beginning of what is no decimal number."""

SIGNED = re.compile(rb"(?:^|[=(\[{,:*/%<>+&|^~!?]|\breturn)[ \t]*\Z", re.MULTILINE)
"""The text before a minus that is a sign, and not a subtraction."""

JOINED = re.compile(rb"\d[-:/]\Z|\A[-:/]\d")  # the text around a part of a date, a time or a range

THOUSANDS = re.compile(rb"\d,\Z|\A,\d{3}(?!\d)")  # the text around a part of a number with commas between thousands

NEAR_BYTES = 16  # the length of the text before and after a number that is inspected

MAX_STEP = 10.0  # the longest step, as a multiple of the number; one nearer to zero than 1 counts as 1

MAX_CHARS = 30  # the length of a number that a step makes

REMEMBERED = 512  # files that are not read again, as most candidates share them


class Constant(NamedTuple):
    """Identifies a number: its file, the name at the top of a Python module that it is assigned to, and its place.

    The place counts the floats of a name. Without a name it counts all such numbers of the file, and means the same
    only in versions that differ in numbers alone.
    """

    path: str
    name: str
    place: int


class Number(NamedTuple):
    """A number as it is written: bytes `start` to `end` of the file, a sign included; whole ones are ints."""

    start: int
    end: int
    value: float


class Numbers(NamedTuple):
    """The numbers of a file; `rest` is a digest of everything else, empty if the file was not looked into."""

    numbers: Mapping[Constant, Number]
    rest: str

    @property
    def named(self) -> Mapping[Constant, Number]:
        """The floats that a Python module assigns to names at its top.

        Integers are left out: they are counts, sizes and choices more often than quantities with a slope.
        """
        return {constant: number for constant, number in self.numbers.items() if constant.name}


NOTHING = Numbers({}, "")  # prose, what is no text, and what is too large


@lru_cache(maxsize=REMEMBERED)
def numbers_of(path: str, content: bytes) -> Numbers:
    """Find the numbers of a file."""
    suffix = PurePosixPath(path).suffix.lower()
    if suffix in PROSE or len(content) > MAX_SOURCE_BYTES or b"\0" in content:
        return NOTHING
    is_python = suffix in (".py", ".pyi", ".pyw")
    places, skipped = _places(content, suffix in HASH_COMMENTS)
    names = _names(content, skipped) if is_python else []
    counts, numbers = Counter[str](), dict[Constant, Number]()
    for start, end in places:
        if not is_python and _is_part(content, start, end):
            continue
        value, name = _value(content[start:end]), ""
        if names and isinstance(value, float) and (at := bisect_right(names, start, key=itemgetter(0))):
            name = names[at - 1][1]
        numbers[Constant(path, name, counts[name])] = Number(start, end, value)
        counts[name] += 1
    masked, stop = list[bytes](), 0
    for number in numbers.values():
        masked += [content[stop : number.start], b"#"]
        stop = number.end
    return Numbers(numbers, digest(b"".join([*masked, content[stop:]])))


def changed_numbers(path: str, before: bytes, after: bytes) -> Mapping[Constant, float]:
    """Return by how much each number changed between two versions of a file; nothing if more than numbers changed."""
    old, new = numbers_of(path, before), numbers_of(path, after)
    if not old.rest or old.rest != new.rest or old.numbers.keys() != new.numbers.keys():
        return {}
    steps = {key: number.value - old.numbers[key].value for key, number in new.numbers.items()}
    return {key: by for key, by in steps.items() if by}


def with_step(content: bytes, number: Number, by: float) -> bytes | None:
    """Return the text with a number moved; a whole one by a whole step stays whole.

    None if it would stay what it is, move too far, become too long, or get a sign where that is a subtraction.
    """
    start, end, value = number
    if not abs(by) <= MAX_STEP * max(abs(value), 1.0):
        return None
    whole = isinstance(value, int) and isinstance(by, int)
    text = str(value + by) if whole else _written(content[start:end], value, by)
    signed = content[start : start + 1] == b"-" or SIGNED.search(content[max(0, start - NEAR_BYTES) : start])
    if len(text) > MAX_CHARS or not math.isfinite(float(text)) or float(text) == value:
        return None
    if text[0] == "-" and not signed:
        return None
    return content[:start] + text.encode() + content[end:]


def rounded(value: float, scale: float) -> float:
    """Round to a hundredth of a step's scale, so that evolved constants stay readable."""
    if not 0 < scale < math.inf:
        return value
    return round(value, 2 - math.floor(math.log10(scale)))


def _places(content: bytes, is_hash: bool) -> tuple[list[tuple[int, int]], list[int]]:
    """Return the bytes of each number, with its sign, and where strings and comments begin and end, in turns."""
    places, skipped = list[tuple[int, int]](), list[int]()
    for token in _TOKENS[is_hash].finditer(content):
        start, end = token.span()
        if not content[start : start + 1].isdigit():
            skipped += token.span()
            continue
        if (start and _PART.match(content, start - 1)) or _OCTAL.match(content, start):
            continue
        minus = start - 1
        if content[minus:start] == b"-" and SIGNED.search(content[max(0, minus - NEAR_BYTES) : minus]):
            start = minus
        places.append((start, end))
    return places, skipped


def _names(content: bytes, skipped: list[int]) -> list[tuple[int, str]]:
    """Return where each statement at the top of a module begins, and the name that it assigns to, if it does."""
    tops = (top for top in _TOPS.finditer(content) if bisect_right(skipped, top.start()) % 2 == 0)
    return [(top.start(), (top[1] or b"").decode(errors="replace")) for top in tops]


def _is_part(content: bytes, start: int, end: int) -> bool:
    """Return whether a number of a text that is not Python is part of a date, a time, a range or a larger number."""
    before, after = content[max(0, start - 2) : start], content[end : end + 5]
    if JOINED.search(before) or JOINED.match(after) or THOUSANDS.match(after):
        return True
    return end - start == 3 and THOUSANDS.search(before) is not None


def _value(written: bytes) -> float:
    return int(written) if re.fullmatch(rb"-?\d+", written) else float(written)


def _written(before: bytes, value: float, by: float) -> str:
    """Return the sum as a text, with an exponent only if the number had one."""
    try:
        moved = rounded(value + by, abs(by))
    except OverflowError:
        return "inf"
    return repr(moved) if b"e" in before.lower() else format(Decimal(repr(moved)), "f")
