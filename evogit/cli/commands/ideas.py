"""`evogit ideas`: what the models of a run tried."""

from __future__ import annotations

import click
from rich.text import Text

from evogit.cli.lines.ideas import idea_lines
from evogit.cli.lines.view import View
from evogit.cli.locate_run import Place
from evogit.cli.options.shared import with_run, with_terminal
from evogit.cli.terminal import Terminal
from evogit.core import NotFoundError
from evogit.review.json_records import SCHEMA, idea_counts, tried


@click.command()
@with_run
@with_terminal
def ideas(place: Place, terminal: Terminal) -> None:
    """List the ideas of a run's models, by family, the best scores first.

    Each line: family, score and gain of the best try, how often it was tried (and how often again without a reason why
    it would be different), agent, candidate, title. Steps of mutators are not ideas; changes of numbers alone are one.
    """
    history = place.history
    if history.started is None:
        raise NotFoundError(f"the run {history.run} has not started; begin it with `evogit run`")
    if terminal.json:
        terminal.data({"schema": SCHEMA, "run": history.run, **idea_counts(history), "ideas": tried(history)})
        return
    none = [Text("no ideas yet: they come from agents that ask a model", "dim")]
    terminal.show(idea_lines(View.of(history, terminal), reasons=True) or none)
