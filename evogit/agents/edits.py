"""Edits of any text: spans that are replaced, numbers that are nudged, lines that go, stay twice or change places."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

TITLE_LENGTH = 72
_NUMBER = re.compile(rb"(?<![\w.])-?\d{1,30}(?:\.\d{1,30})?(?:[eE][+-]?\d{1,3})?(?![\w.])")


@dataclass(frozen=True, slots=True)
class Edit:
    """Bytes `start` to `end` become `new`; `title` says so in one line."""

    start: int
    end: int
    new: bytes
    title: str

    def overlaps(self, other: Edit) -> bool:
        """Whether both touch the same text, so that only one of them can be made."""
        return self.start <= other.end and other.start <= self.end


def apply(content: bytes, edits: Sequence[Edit]) -> bytes:
    """Make edits that do not overlap; everything else keeps its bytes."""
    for edit in sorted(edits, key=lambda each: each.start, reverse=True):
        before, after, new = content[: edit.start], content[edit.end :], edit.new
        if _glued(before, new):
            new = b" " + new
        if _glued(new, after):
            new += b" "
        content = before + new + after
    return content


def one_line(text: str, limit: int = TITLE_LENGTH) -> str:
    """Text as one line of printable characters, shortened to `limit` characters."""
    line = text if text.isprintable() else "".join(char if char.isprintable() else " " for char in text)
    line = " ".join(line.split())
    return line if len(line) <= limit else line[: limit - 3] + "..."


def titled(text: str, where: str = "") -> str:
    """A title that ends with the function's name, shortened to fit."""
    suffix = " " + one_line(f"in {where}()", TITLE_LENGTH // 2) if where else ""
    return one_line(text, TITLE_LENGTH - len(suffix)) + suffix


def complete_line(lines: bytes) -> bytes:
    """Lines with a line end, which the last one of a file may lack."""
    return lines if line_end(lines) else lines + b"\n"


def line_end(lines: bytes) -> bytes:
    """The line end that lines end with; empty where there is none."""
    found = re.search(rb"(\r\n|\r|\n)\Z", lines)
    return found.group() if found else b""


# --- numbers ----------------------------------------------------------------------------------------------------


def nudged(text: str, rng: random.Random) -> str | None:
    """A number near the one that is written in `text`, an integer for an integer; None where there is none."""
    if len(text) > 30:
        return None
    bare = re.sub(r"[\s\\]", "", text)
    try:
        value: float = int(bare, 0)
    except ValueError:  # also leading zeros, in languages that allow them
        value = float(bare)
    new = _nudged_int(value, rng) if isinstance(value, int) else _nudged_float(value, rng)
    return repr(new) if new != value and math.isfinite(new) else None


def _nudged_float(value: float, rng: random.Random) -> float:
    """Steps of every size from 0.1 % on, log-uniformly, because no one knows the scale of a stranger's constant."""
    way = rng.random()
    if way < 0.6 and value:
        scale = 10 ** rng.uniform(-3, 0)
        return _rounded(value * math.exp(rng.gauss(0, scale)), scale * abs(value))
    if way < 0.93:
        scale = 10 ** rng.uniform(-3, 0)
        return _rounded(value + rng.gauss(0, scale), scale)
    if way < 0.97 and value:
        return float(f"{value:.{rng.randint(1, 3)}g}")
    return -value


def _rounded(value: float, scale: float) -> float:
    """Rounded to a hundredth of the step's scale, so that evolved constants stay readable."""
    if not 0 < scale < math.inf:
        return value
    return round(value, 2 - math.floor(math.log10(scale)))


def _nudged_int(value: int, rng: random.Random) -> int:
    way = rng.random()
    if way < 0.5:
        return value + rng.choice((-1, 1))
    if way < 0.75:
        return value + rng.choice((-1, 1)) * rng.randint(2, 5)
    if way < 0.9 and abs(value) > 10:
        return round(value * math.exp(rng.gauss(0, 0.3)))
    return rng.choice((value * 2, value // 2, value * 2, value // 2, -value))


# --- other languages --------------------------------------------------------------------------------------------


def edit_text(content: bytes, rng: random.Random) -> Edit | None:
    """Edit a text whose language is unknown: mostly a number, else delete, duplicate or swap lines."""
    numbers = list(_NUMBER.finditer(content))
    if not numbers or rng.random() > 0.8:
        return _edit_lines(content, rng)
    found = rng.choice(numbers)
    old = found.group().decode()
    new = nudged(old, rng)
    return None if new is None else Edit(*found.span(), new.encode(), titled(f"perturb {old} -> {new}"))


def _edit_lines(content: bytes, rng: random.Random) -> Edit | None:
    lines = content.splitlines(keepends=True)
    filled = [index for index, line in enumerate(lines) if line.strip()]
    if not filled:
        return None
    index = rng.choice(filled)
    line = lines[index]
    start = sum(map(len, lines[:index]))
    way = rng.choice(("delete", "duplicate", "swap"))
    title = titled(f"{way} line {index + 1}: {line.decode()}")
    if way == "delete":
        return Edit(start, start + len(line), b"", title)
    if way == "duplicate":
        return Edit(start, start + len(line), complete_line(line) + line, title)
    following = b"".join(lines[index + 1 : index + 2])
    if not following:
        return None
    return Edit(start, start + len(line + following), complete_line(following) + line, title)


# --- helpers ----------------------------------------------------------------------------------------------------


def _glued(before: bytes, after: bytes) -> bool:
    """Whether two texts would grow together into one word."""
    return _is_word(before[-1:]) and _is_word(after[:1])


def _is_word(char: bytes) -> bool:
    return char.isalnum() or char == b"_" or char >= b"\x80"
