"""`evogit diff`: what changed between two candidates."""

from __future__ import annotations

import click

from evogit.cli.lines.compare import change_lines
from evogit.cli.lines.view import View
from evogit.cli.locate_run import Place
from evogit.cli.options.shared import REVISION, with_run, with_terminal
from evogit.cli.terminal import Terminal
from evogit.core import Candidate
from evogit.history import History
from evogit.review import SCHEMA, candidate_record, resolve


@click.command()
@click.argument("a", type=REVISION, required=False)
@click.argument("b", type=REVISION, required=False)
@with_run
@with_terminal
def diff(place: Place, terminal: Terminal, a: str | None, b: str | None) -> None:
    """Show what changed from A to B: the metrics, then the code.

    With one argument: from its first parent. With none: from the seed to the best.
    """
    old, new = _pair(place.history, a, b)
    patch = place.repository.diff(old.commit, new.commit)
    if terminal.json:
        records = {name: candidate_record(place.history, each) for name, each in (("a", old), ("b", new))}
        terminal.data({"schema": SCHEMA, **records, "patch": patch})
        return
    terminal.show(change_lines(View.of(place.history, terminal), old, new, patch))


def _pair(history: History, a: str | None, b: str | None) -> tuple[Candidate, Candidate]:
    if a and b:
        return resolve(history, a), resolve(history, b)
    if a is None:
        return resolve(history, "seed"), resolve(history, "best")
    new = resolve(history, a)
    return (history.phylogeny[new.parents[0]] if new.parents else new), new
