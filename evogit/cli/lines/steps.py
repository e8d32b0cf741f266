"""Lines about the steps of a result: the gain and the diff of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import to_builtins
from rich.text import Text

from evogit.cli.lines.view import STYLES, View, first_line
from evogit.cli.terminal import table
from evogit.cli.text import number
from evogit.review.json_records import gain_record
from evogit.review.landed_steps import LandedStep


def step_lines(view: View, steps: Sequence[LandedStep]) -> Iterator[Text]:
    """Show each step: its gain over what is left without it, or else over what it was made of, and its diff."""
    rows = []
    for step in steps:
        gain, share, over = Text("needed", "green") if step.remark else Text("not measured", "dim"), "", ""
        if compared := step.compared:
            gain = Text(compared.between(view.places, view.glyphs.give), STYLES[compared.verdict])
            share, over = compared.relative, number(compared.over, view.places)
        title = Text.assemble(first_line(step.title), (f" ({first_line(step.remark)})" if step.remark else "", "dim"))
        rows.append([Text(over), gain, Text(share, "dim"), Text(str(step.size or "with the next")), title])
    if rows:
        lines = table(rows, "rrlll", ("without", "gain", "", "diff", "step"))
        yield from (Text("  ").append_text(line) for line in lines)


def step_record(step: LandedStep) -> dict[str, Any]:
    """The same as JSON has it."""
    about = {"candidate": step.candidate.commit, "title": step.title, "tree": step.tree, "remark": step.remark}
    without = {"without": step.compared.over if step.compared else None}
    return {**about, **without, "size": to_builtins(step.size), **gain_record(step.compared)}
