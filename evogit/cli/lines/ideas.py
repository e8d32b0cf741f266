"""The table of the ideas of a run."""

from __future__ import annotations

import math

from rich.text import Text

from evogit.cli.lines.view import SHORT, STYLES, View, first_line
from evogit.cli.terminal import table
from evogit.cli.text import escape
from evogit.history.ideas import Idea, by_family, ideas


def idea_lines(view: View, *, reasons: bool = False) -> list[Text]:
    """Return a row for each idea, by family, the best scores first; with `reasons` a line below each."""

    def worse(idea: Idea) -> float:
        return math.inf if idea.score is None else -view.history.metric.sign * idea.score

    groups = sorted(by_family(ideas(view.history)).values(), key=lambda group: min(map(worse, group)))
    ordered = [idea for group in groups for idea in sorted(group, key=worse)]
    heads = ("family", view.history.metric.name, "gain", "tries", "agent", "candidate", "idea")
    head, *rows = table((_row(view, idea) for idea in ordered), "lrrrlll", heads)
    lines = [head] if rows else []
    for idea, row in zip(ordered, rows, strict=True):
        lines += [row, Text(f"  {first_line(idea.reason)}", "dim")] if reasons and idea.reason else [row]
    return lines


def _row(view: View, idea: Idea) -> list[Text]:
    known = idea.standing
    failed = idea.outcome if known is None or known.failed else ""
    return [
        Text(escape(idea.family) or "-"),
        Text(*view.score_styled(known)) if known else Text("unusable", "red"),
        Text(*view.gain_styled(known.comparison if known else None)),
        Text(f"{idea.tries}" + (f" ({idea.repeats} unaware)" if idea.repeats else "")),
        Text(first_line(idea.agent)),
        Text(idea.candidate[:SHORT] or "-", "cyan"),
        Text.assemble(first_line(idea.title), (f"  {first_line(failed)}" if failed else "", STYLES["tied"])),
    ]
