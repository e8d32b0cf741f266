"""The front of a run that searches over several metrics, as a table."""

from __future__ import annotations

from rich.text import Text

from evogit.cli.lines.view import SHORT, View, first_line
from evogit.cli.terminal import table
from evogit.cli.text import count
from evogit.review.json_records import front_record

MEMBERS = 12
"""Members of a front that are shown."""


def front_lines(view: View) -> list[Text]:
    """The unbeaten, metric by metric, on the run's split and the holdout; empty with a single objective."""
    found = front_record(view.history)
    if found is None:
        return []
    names = [each["name"] for each in found["objectives"]]
    splits = [("metrics", "")]
    splits += [("holdout", "holdout ")] if any(each["holdout"] for each in found["members"]) else []
    rows = [["front", *(f"{title}{first_line(name)}" for _, title in splits for name in names)]]
    for each in found["members"][:MEMBERS]:
        values = [(each[split] or {}).get(name) for split, _ in splits for name in names]
        rows.append([each["commit"][:SHORT], *("-" if value is None else f"{value:,.6g}" for value in values)])
    head, *told = table(rows, "l" + "r" * (len(rows[0]) - 1))
    head.stylize("dim")
    rest = len(found["members"]) - MEMBERS
    more = [Text(f"and {count(rest, 'more')} unbeaten", "dim")] if rest > 0 else []
    return [Text(""), head, *told, *more, *_volumes(found["hypervolume"], found["holdout_hypervolume"])]


def _volumes(volume: float | None, holdout: float | None) -> list[Text]:
    if volume is None:
        return []
    beside = "" if holdout is None else f", on the holdout {holdout:.6g}"
    return [Text(f"hypervolume over the seed {volume:.6g}{beside}")]
