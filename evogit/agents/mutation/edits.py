"""Edits of any text: spans that are replaced, numbers that are nudged, lines that go, stay twice or change places."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from msgspec import Struct

from evogit.agents.mutation.mix import Mix
from evogit.agents.mutation.numbers import nudged
from evogit.source.syntax_parts import NUMBER_SUFFIX
from evogit.text import TITLE_LENGTH, one_line

MOST_WAYS = 3
"""Ways of changing code that a strategy names."""

_NUMBER = re.compile(rb"(?<![\w.])-?\d{1,30}(?:\.\d{1,30})?(?:[eE][+-]?\d{1,3})?(?![\w.])")


class Edit(Struct, frozen=True):
    """Bytes `start` to `end` become `new`; `title` says so in one line, `way` names the kind of edit."""

    start: int
    end: int
    new: bytes
    title: str
    way: str = ""

    def overlaps(self, other: Edit) -> bool:
        """Whether both touch the same text, so that only one of them can be made."""
        return self.start <= other.end and other.start <= self.end


def apply(content: bytes, edits: Sequence[Edit]) -> bytes:
    """Make edits that do not overlap; everything else keeps its bytes."""
    for edit in sorted(edits, key=lambda each: each.start, reverse=True):
        before, after, new = content[: edit.start], content[edit.end :], edit.new
        if _glued(before, new):
            new = b" " + new
        if _glued(new, after) and not NUMBER_SUFFIX.match(after):
            new += b" "
        if before.endswith(b"-") and new.startswith(b"-"):  # many languages have `--`
            new = b" " + new
        content = before + new + after
    return content


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


# --- other languages --------------------------------------------------------------------------------------------


TEXT = {"perturb_number": 0.8, "delete_line": 0.0667, "duplicate_line": 0.0667, "swap_lines": 0.0666}
"""The ways to edit a text whose language is unknown, and their usual chances."""


def edit_text(content: bytes, rng: random.Random, mix: Mix) -> Edit | None:
    """Edit a text whose language is unknown: mostly a number, else delete, duplicate or swap lines."""
    way = mix.draw(TEXT, rng)
    numbers = list(_NUMBER.finditer(content))
    if way == "perturb_number" and numbers:
        return _edit_number(rng.choice(numbers), rng, mix)
    lines = content.splitlines(keepends=True)
    filled = [index for index, line in enumerate(lines) if line.strip()]
    if not filled:
        return None
    way = way if way != "perturb_number" else rng.choice(list(TEXT)[1:])
    return _edit_lines(lines, rng.choice(filled), way)


def _edit_number(found: re.Match[bytes], rng: random.Random, mix: Mix) -> Edit | None:
    old = found.group().decode()
    if (changed := nudged(old, rng, mix)) is None:
        return None
    new, way = changed
    return Edit(*found.span(), new.encode(), titled(f"perturb {old} -> {new}"), way)


def _edit_lines(lines: list[bytes], index: int, way: str) -> Edit | None:
    line, following = lines[index], b"".join(lines[index + 1 : index + 2])
    start = sum(map(len, lines[:index]))
    title = titled(f"{way.replace('_', ' ')} {line.decode().strip()}")
    if way == "delete_line":
        return Edit(start, start + len(line), b"", title, way)
    if way == "duplicate_line":
        return Edit(start, start + len(line), complete_line(line) + line, title, way)
    if not following:
        return None
    return Edit(start, start + len(line + following), complete_line(following) + line, title, way)


# --- helpers ----------------------------------------------------------------------------------------------------


def _glued(before: bytes, after: bytes) -> bool:
    """Whether two texts would grow together into one word."""
    return _is_word(before[-1:]) and _is_word(after[:1])


def _is_word(char: bytes) -> bool:
    return char.isalnum() or char == b"_" or char >= b"\x80"
