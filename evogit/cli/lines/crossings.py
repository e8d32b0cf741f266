"""Tables of what merges and grafts brought."""

from __future__ import annotations

from typing import Any

from evogit.cli.lines.view import SHORT, View, on_one_line
from evogit.cli.text import change


def strategy_rows(view: View, strategies: list[dict[str, Any]]) -> list[list[str]]:
    """A table of what each strategy brought, with its head; empty where nothing was merged."""
    keys = ("made", "clean", "valid", "better")
    rows = [
        [f"{each['operator']} ({each['strategy']})", *(f"{each[key]:,}" for key in keys), _gain(view, each["gain"])]
        for each in strategies
    ]
    return [["strategy", *keys, "mean gain"], *rows] if rows else []


def step_rows(view: View, steps: list[dict[str, Any]]) -> list[list[str]]:
    """A table of what each grafted step did on other candidates, with its head; empty where none was grafted."""
    rows = []
    for each in steps:
        low, high = (_gain(view, value) for value in each["interval"] or (None, None))
        between = f"{low} .. {high}" if each["interval"] else "-"
        name = f"{each['commit'][:SHORT]} {on_one_line(each['title'])[:48]}"
        rows.append([name, f"{each['helped']} of {each['backgrounds']}", _gain(view, each["gain"]), between])
    return [["step", "helped", "mean gain", "interval"], *rows] if rows else []


def _gain(view: View, gain: float | None) -> str:
    return "-" if gain is None else change(gain, view.places)
