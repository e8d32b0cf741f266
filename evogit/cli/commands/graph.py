"""`evogit graph`: who was bred from whom."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from evogit.cli.files import figure_file, page_file
from evogit.cli.lines.phylogeny import draw, selection
from evogit.cli.lines.view import View
from evogit.cli.locate_run import Place
from evogit.cli.options.shared import REVISION, OutputPath, with_run, with_terminal
from evogit.cli.renamed import retired_option
from evogit.cli.terminal import Terminal
from evogit.core import UsageError
from evogit.review import graph_record


@click.command()
@click.option("-n", "limit", type=click.IntRange(min=2), metavar="N", help="At most the N most telling candidates.")
@click.option("--all", "everything", is_flag=True, help="Fold nothing.")
@retired_option("--expand", type=REVISION, multiple=True, instead="--all folds nothing")
@retired_option("--against", instead="`evogit export --figure lineage` draws figures")
@retired_option("--colour", instead="`evogit export --figure lineage` draws figures")
@retired_option("--dark", is_flag=True, instead="`evogit export --figure lineage` draws figures")
@click.option("--format", "form", default="text", hidden=True)
@click.option("-o", "--output", type=OutputPath(dir_okay=False), hidden=True)
@click.option("--redact", is_flag=True, hidden=True)
@with_run
@with_terminal
def graph(
    place: Place,
    terminal: Terminal,
    limit: int | None,
    everything: bool,
    expand: Sequence[str],
    form: str,
    output: Path | None,
    redact: bool,
    **_retired: object,
) -> None:
    """Draw the phylogeny, the youngest candidate on top.

    Shown are the agents' individuals, every candidate that was the best when it was evaluated, what people decided
    about, and the ancestors of all these. The rest is folded into its nearest shown ancestor. A dotted edge leads to a
    candidate that is no parent: the agent was shown it, and the child has lines that it brought. `evogit export` draws
    figures and writes the page as a file.
    """
    if form in ("svg", "png", "html"):
        _export(place, terminal, form, output, redact)
        return
    if form not in ("text", "json"):
        raise UsageError(f"--format {form} is gone; `evogit graph --json` and `evogit export run.csv` have its data")
    shown = selection(place.history, limit, everything, expand)
    if terminal.json or form == "json":
        terminal.data(graph_record(place.history, shown))
    else:
        terminal.show(draw(View.of(place.history, terminal), shown), fit="ellipsis")


def _export(place: Place, terminal: Terminal, form: str, output: Path | None, redact: bool) -> None:
    """Write what `export` writes, under the option of the last release."""
    command = f"evogit export {'' if form == 'html' else '--figure lineage '}run.{form}"
    terminal.note(f"graph --format {form} is now `{command}`; the old name goes in the next release")
    if form == "html":
        data = page_file(place, terminal, "graph", redact=redact).encode()
    else:
        data = figure_file([place], "lineage", "evaluations", form)
    if output is None:
        sys.stdout.buffer.write(data)
    else:
        output.write_bytes(data)
