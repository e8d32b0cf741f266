"""`evogit stop`: asks the engines of a run to finish their evaluations, and to end."""

from __future__ import annotations

import math
import time

import click

from evogit.cli.locate_run import Place
from evogit.cli.options.shared import reason_option, with_run, with_terminal
from evogit.cli.terminal import Terminal
from evogit.cli.text import count
from evogit.core import RefusedError
from evogit.engine.stop_request import ALL
from evogit.events import Decision
from evogit.repository import clean
from evogit.review import SCHEMA, decide

PATIENCE_S = ALL + 10.0  # for work under way, and for what engines write in the end
LOOK_EVERY_S = 0.1


@click.command()
@click.option("--after-calls", is_flag=True, help="Wait until models have answered the calls in flight; begin none.")
@reason_option
@with_run
@with_terminal
def stop(place: Place, terminal: Terminal, reason: str, after_calls: bool) -> None:
    """Stop the engines at work on a run: nothing new begins, calls of models have 5 s and evaluations 30 s to end.

    A call that is dropped may be billed all the same; with --after-calls none is, and a second `evogit stop` drops
    them. `evogit run` resumes the run.
    """
    run = place.history.run
    engines = place.repository.engines(run)
    asked = engines.alive()
    if not asked:
        raise RefusedError(f"no engine of this repository is at work on the run {run}, so there is nothing to stop")
    who, why = place.repository.user, clean(reason)
    decide(place, Decision(kind="stop", by=who, reason=why, after_calls=after_calls))
    rest = "calls in flight are waited for" if after_calls else f"what is under way has {ALL:g} s"
    terminal.note(f"asked {count(len(asked), 'engine')} to stop; {rest}")
    until = math.inf if after_calls else time.monotonic() + PATIENCE_S
    left = asked
    while left and time.monotonic() < until:
        time.sleep(LOOK_EVERY_S)
        left = [engine for engine in engines.alive() if engine in asked]
    if terminal.json:
        terminal.data({"schema": SCHEMA, "run": run, "asked": asked, "at_work": left})
    elif left:
        terminal.note(f"{count(len(left), 'engine')} still at work; see `{place.hint('status')}`")
    else:
        terminal.note(f"{run} has stopped")
