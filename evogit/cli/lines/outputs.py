"""Lines about outputs that must stay the same."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.text import Text

from evogit.cli.text import count, escape

if TYPE_CHECKING:
    from evogit.review.same_output import OutputComparison

MAX_LINES = 24
"""Lines that are shown of an input, and of how two outputs differ."""


def output_lines(compared: OutputComparison | None) -> Iterator[Text]:
    """Show how many inputs were compared, if any, and the smallest one on which outputs differ, with both outputs."""
    if compared is None:
        return
    yield Text(f"  {escape(compared.summary)}", "red" if compared.objection else "green")
    if (found := compared.difference) is None:
        return
    origin = f"shrunk from {count(found.size, 'byte')}, made of {escape(found.source)}"
    yield Text(f"  the smallest input that differs ({origin}):", "yellow")
    lines = found.text.split("\n")
    yield from (Text(f"    {escape(line)}") for line in lines[:MAX_LINES])
    yield Text("  its output before and after:", "yellow")
    before, after = found.before.split("\n"), found.after.split("\n")
    styles = {"+": "green", "-": "red"}
    for line in [*difflib.unified_diff(before, after, n=2, lineterm="")][2 : 2 + MAX_LINES]:
        yield Text(f"    {escape(line)}", styles.get(line[:1], ""))
