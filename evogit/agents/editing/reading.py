"""What a model gets to see of a file that it asks to READ."""

from __future__ import annotations

from collections.abc import Iterator

from evogit.agents.briefs.bodies import named
from evogit.agents.editing.blocks import EditError
from evogit.agents.editing.calls import ReadLines
from evogit.llm import estimate_tokens
from evogit.text import cut, escaped, fence, one_line


def read(call: ReadLines, text: str, room: int) -> str:
    """The lines that are asked for, as many as fit into so many tokens, under a heading that says which they are.

    Raises EditError: the file has no such lines, or defines no such name.
    """
    lines = text.split("\n")
    lines = lines[:-1] if lines[-1] == "" else lines
    first, last = _range(call, text, len(lines))
    if first > max(last, 1):
        raise EditError(f"{one_line(call.path, 100)!r} has {len(lines):,} lines")
    asked = lines[first - 1 : last]
    shown = list(_fitting(asked, room))
    end = first + len(shown) - 1
    about = f"File {one_line(call.path, 300)}, lines {first:,}-{end:,} of {len(lines):,}"
    if not shown and asked:
        return f"{about}, the first of which is cut:\n{fence(escaped(cut(asked[0], room)))}"
    more = f"\nREAD {one_line(call.path, 300)} {end + 1}-{last} shows the rest." if end < last else ""
    return f"{about}:\n{fence(escaped(chr(10).join(shown))) or '(empty)'}{more}"


def _range(call: ReadLines, text: str, count: int) -> tuple[int, int]:
    """The first and the last line that are asked for."""
    if not call.name:
        return call.first, min(call.last or count, count)
    part = named(text, call.name)
    if part is None:
        raise EditError(f"{one_line(call.path, 100)!r} has no definition of {one_line(call.name, 100)!r}")
    return part.first, part.last


def _fitting(lines: list[str], room: int) -> Iterator[str]:
    """As many of the first lines as fit."""
    for line in lines:
        room -= estimate_tokens(line + "\n")
        if room < 0:
            return
        yield line
