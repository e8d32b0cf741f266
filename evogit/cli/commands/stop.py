"""`evogit stop`: asks the engines of a run to finish their evaluations, and to end."""

from __future__ import annotations

import time

import click

from evogit.cli.locate_run import Place
from evogit.cli.options.shared import with_run, with_terminal
from evogit.cli.terminal import Terminal
from evogit.cli.text import count
from evogit.core import Decision, RefusedError
from evogit.engine.stop_request import ALL
from evogit.repository import clean
from evogit.review import SCHEMA, decide

PATIENCE = 10.0
"""Seconds that a person waits for the engines unless they ask for longer."""

LOOK_EVERY = 0.1
"""Seconds between two looks at who is still at work."""


@click.command()
@click.option("--wait", is_flag=True, help=f"Wait until all have ended; default: {PATIENCE:g} seconds at most.")
@click.option("-m", "--reason", metavar="WHY", default="", help="Why; it is kept in the journal.")
@with_run
@with_terminal
def stop(place: Place, terminal: Terminal, wait: bool, reason: str) -> None:
    """Stop the engines at work on a run: nothing new begins, calls of models have 5 s and evaluations 30 s to end.

    Nothing is lost; `evogit run` resumes the run.
    """
    run = place.history.run
    engines = place.repository.engines(run)
    asked = engines.alive()
    if not asked:
        raise RefusedError(f"no engine of this repository is at work on the run {run}, so there is nothing to stop")
    decide(place, Decision(kind="stop", by=place.repository.user, reason=clean(reason)))
    terminal.note(f"asked {count(len(asked), 'engine')} to stop; what is under way has {ALL:g} s")
    until = None if wait else time.monotonic() + PATIENCE
    left = asked
    while left and (until is None or time.monotonic() < until):
        time.sleep(LOOK_EVERY)
        left = [engine for engine in engines.alive() if engine in asked]
    if terminal.json:
        terminal.data({"schema": SCHEMA, "run": run, "asked": asked, "at_work": left})
    elif left:
        terminal.note(_still(place, len(left)))
    else:
        terminal.note(f"{run} has stopped")


def _still(place: Place, left: int) -> str:
    place.journal.refresh()
    judged = f"{count(len(place.history.pending), 'candidate')} to evaluate"
    return f"{count(left, 'engine')} still at work, with {judged}; `{place.hint('status')}` tells, --wait waits"
