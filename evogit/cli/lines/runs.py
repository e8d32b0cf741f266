"""Runs in a line each."""

from __future__ import annotations

import time
from collections.abc import Sequence

from rich.text import Text

from evogit.cli.lines.view import first_line
from evogit.cli.terminal import table
from evogit.cli.text import age, count, escape, number
from evogit.history.standing import places
from evogit.review.run_list import RunOverview


def run_table(runs: Sequence[RunOverview], *, folders: bool) -> list[Text]:
    """Return how each run stands, with a header; `folders`: and the folder of its repository."""
    heads = [Text(head, "dim") for head in ("run", "state", "evaluations", "best", "since", "in")]
    columns = len(heads) if folders else len(heads) - 1
    return table([row[:columns] for row in (heads, *map(_row, runs))], "llrrrl"[:columns])


def _row(run: RunOverview) -> list[Text]:
    history = run.history
    best = history.fitness(history.best) if history.best else None
    return [
        Text(first_line(history.run), "bold"),
        _state(run),
        Text(f"{history.counts.evaluated:,}"),
        Text("-" if best is None else number(best, places(history))),
        Text(f"{age(time.time() - run.since)} ago"),
        Text(escape(str(run.path)), "dim"),
    ]


def _state(run: RunOverview) -> Text:
    if run.engines:
        return Text("at work" + (f": {count(len(run.engines), 'engine')}" if run.engines[1:] else ""), "green")
    if run.trouble:
        return Text(f"cannot be read: {first_line(run.trouble)}", "red")
    stopped = run.history.stopped
    if stopped is None:
        return Text("not stopped cleanly", "yellow")
    return Text(f"ended: {stopped.reason}", "red" if stopped.reason == "error" else "")
