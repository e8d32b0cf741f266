"""One number of a text that became another, in whatever language: found between two versions, and made again."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from decimal import Decimal
from os.path import commonprefix
from typing import NamedTuple

DIGITS = re.compile(rb"(?<![\w.\x80-\xff])\d{1,30}(?:\.\d{1,30})?(?:[eE][+-]?\d{1,3})?(?![\w.\x80-\xff])")
"""A number as most languages write it, by itself: no part of a name or of a version such as 1.2.3."""

SIGNED = re.compile(rb"(?:^|[=(\[{,:*/%<>+&|^~!?]|\breturn)[ \t]*\Z", re.MULTILINE)
"""What comes before a minus that is a sign, and no subtraction."""

JOINED = re.compile(rb"\d[-:/]\Z|\A[-:/]\d")  # around a part of a date, a time or a range, which is no number by itself
THOUSANDS = re.compile(rb"\d,\Z|\A,\d{3}(?!\d)")  # around a part of a number with commas between thousands
NEAR = 16  # bytes that are looked at around a number
FARTHEST = 10.0  # the longest step, as a multiple of the number; one nearer to zero than 1 is taken for that
LONGEST = 30  # characters of a number that a step makes


class NumberChange(NamedTuple):
    """Bytes `start` to `old_end` of one version, which became `start` to `new_end` of the other, greater `by` that.

    `by` is whole where both numbers are.
    """

    start: int
    old_end: int
    new_end: int
    by: float


def changed_number(before: bytes, after: bytes) -> NumberChange | None:
    """The number in which two versions differ; None where they differ in anything else, or in nothing."""
    same = len(commonprefix([before, after]))
    old = next((each for each in _numbers(before, same) if each.stop >= same), None)
    new = old and next((each for each in _numbers(after, old.start) if each.start == old.start), None)
    if old is None or new is None or old.start > same or before[old.stop :] != after[new.stop :]:
        return None
    then, now = _value(before[old.start : old.stop]), _value(after[new.start : new.stop])
    return NumberChange(old.start, old.stop, new.stop, now - then) if now != then else None


def with_step(content: bytes, start: int, end: int, by: float) -> bytes | None:
    """The text with the number at bytes `start` to `end` moved; a whole one by a whole step stays whole.

    None where it would stay what it is, be moved too far, become too long, or get a sign where that is a subtraction.
    """
    value = _value(content[start:end])
    if not abs(by) <= FARTHEST * max(abs(value), 1.0):
        return None
    text = (
        str(value + by) if isinstance(value, int) and isinstance(by, int) else _written(content[start:end], value, by)
    )
    signed = content[start : start + 1] == b"-" or SIGNED.search(content[max(0, start - NEAR) : start])
    if len(text) > LONGEST or not math.isfinite(float(text)) or float(text) == value or (text[0] == "-" and not signed):
        return None
    return content[:start] + text.encode() + content[end:]


def rounded(value: float, scale: float) -> float:
    """Rounded to a hundredth of a step's scale, so that evolved constants stay readable."""
    if not 0 < scale < math.inf:
        return value
    return round(value, 2 - math.floor(math.log10(scale)))


def _numbers(content: bytes, first: int) -> Iterator[slice]:
    """The numbers from the line on in which byte `first` stands, each with the minus that is its sign."""
    for found in DIGITS.finditer(content, max(0, content.rfind(b"\n", 0, first))):
        start, end = found.span()
        if found[0][:1] == b"0" and found[0][1:2].isdigit():
            continue
        before, after = content[max(0, start - 2) : start], content[end : end + 5]
        if JOINED.search(before) or JOINED.match(after) or THOUSANDS.match(after):
            continue
        if end - start == 3 and THOUSANDS.search(before):
            continue
        minus = start - 1
        is_sign = content[minus:start] == b"-" and SIGNED.search(content[max(0, minus - NEAR) : minus])
        yield slice(minus if is_sign else start, end)


def _value(written: bytes) -> float:
    return int(written) if re.fullmatch(rb"-?\d+", written) else float(written)


def _written(before: bytes, value: float, by: float) -> str:
    """The sum as a text, with an exponent only where the number had one."""
    try:
        found = rounded(value + by, abs(by))
    except OverflowError:
        return "inf"
    return repr(found) if b"e" in before.lower() else format(Decimal(repr(found)), "f")
