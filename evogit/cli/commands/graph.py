"""`evogit graph`: who was bred from whom."""

from __future__ import annotations

import click

from evogit.cli.lines.phylogeny import draw, selection
from evogit.cli.lines.view import View
from evogit.cli.locate_run import Place
from evogit.cli.options.shared import with_run, with_terminal
from evogit.cli.terminal import Terminal
from evogit.review import graph_record


@click.command()
@click.option("-n", "limit", type=click.IntRange(min=2), metavar="N", help="At most the N most telling candidates.")
@click.option("--all", "everything", is_flag=True, help="Fold nothing.")
@with_run
@with_terminal
def graph(place: Place, terminal: Terminal, limit: int | None, everything: bool) -> None:
    """Draw the phylogeny, the youngest candidate on top.

    Shown are the agents' individuals, every candidate that was the best when it was evaluated, what people decided
    about, and the ancestors of all these. The rest is folded into its nearest shown ancestor. A dotted edge leads to a
    candidate that is no parent: the agent was shown it, and the child has lines that it brought. `evogit export` draws
    figures and writes the page as a file.
    """
    shown = selection(place.history, limit, everything)
    if terminal.json:
        terminal.data(graph_record(place.history, shown))
    else:
        terminal.show(draw(View.of(place.history, terminal), shown), fit="ellipsis")
