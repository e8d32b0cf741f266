"""One number of a text that became another, in whatever language: found between two versions, and made again."""

from __future__ import annotations

import math
import re
from os.path import commonprefix
from typing import NamedTuple

NUMBER = re.compile(rb"(?<![\w.])-?\d{1,30}(?:\.\d{1,30})?(?:[eE][+-]?\d{1,3})?(?![\w.])")
"""A decimal number as most languages write it, by itself: no part of a name or of a version such as 1.2.3."""

FARTHEST = 10.0
"""The longest step, as a multiple of the number; one nearer to zero than 1 is taken for that."""


class NumberChange(NamedTuple):
    """Bytes `start` to `old_end` of one version, which became `start` to `new_end` of the other, greater `by` that."""

    start: int
    old_end: int
    new_end: int
    by: float


def changed_number(before: bytes, after: bytes) -> NumberChange | None:
    """The number in which two versions differ; None where they differ in anything else, or in nothing."""
    same = len(commonprefix([before, after]))
    old = next((each for each in NUMBER.finditer(before) if each.end() >= same), None)
    if old is None or old.start() > same:
        return None
    new = NUMBER.match(after, old.start())
    if new is None or new.group() == old.group() or after[new.end() :] != before[old.end() :]:
        return None
    return NumberChange(old.start(), old.end(), new.end(), float(new.group()) - float(old.group()))


def with_step(content: bytes, start: int, end: int, by: float) -> bytes | None:
    """The text with the number at bytes `start` to `end` moved; a whole one by a whole step stays whole.

    None where it would stay what it is, be moved too far, or run into a minus sign before it.
    """
    written = content[start:end]
    value = float(written)
    if not abs(by) <= FARTHEST * max(abs(value), 1.0) or not by:
        return None
    if re.fullmatch(rb"-?\d+", written) and by.is_integer():
        text = str(int(written) + int(by))
    else:
        text = repr(rounded(value + by, abs(by)))
    if float(text) == value or not math.isfinite(float(text)) or (content[:start].endswith(b"-") and text[0] == "-"):
        return None
    return content[:start] + text.encode() + content[end:]


def rounded(value: float, scale: float) -> float:
    """Rounded to a hundredth of a step's scale, so that evolved constants stay readable."""
    if not 0 < scale < math.inf:
        return value
    return round(value, 2 - math.floor(math.log10(scale)))
