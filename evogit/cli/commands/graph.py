"""`evogit graph`: who was bred from whom, as text, as a picture, as a page, or for other programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from evogit.cli.lines.phylogeny import draw, selection
from evogit.cli.lines.view import View
from evogit.cli.locate_run import Place
from evogit.cli.options.shared import REVISION, OutputPath, with_run, with_terminal
from evogit.cli.page_file import page_file
from evogit.cli.renamed import retired_option
from evogit.cli.terminal import Terminal
from evogit.cli.text import count
from evogit.core import UsageError
from evogit.review import graph_record


@click.command()
@click.option("-n", "limit", type=click.IntRange(min=2), metavar="N", help="At most the N most telling candidates.")
@click.option("--all", "everything", is_flag=True, help="Fold nothing.")
@retired_option("--expand", type=REVISION, multiple=True, instead="--all folds nothing")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "svg", "png", "html"]),
    default="text",
    show_default=True,
    help="html: one file with all of the run, to send to somebody.",
)
@click.option("-o", "--output", type=OutputPath(dir_okay=False), help="A file to write, instead of standard output.")
@retired_option(
    "--against",
    type=click.Choice(["time", "evaluations", "dollars"]),
    default="evaluations",
    instead="drawn by evaluations",
)
@retired_option(
    "--colour",
    type=click.Choice(["agent", "operator", "model", "status", "host"]),
    default="agent",
    instead="colours mean agents",
)
@retired_option("--dark", is_flag=True, instead="figures have a light background")
@click.option("--redact", is_flag=True, help="For html: leave out prompts, replies and output.")
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
    **look: str,
) -> None:
    """Draw the phylogeny, the youngest candidate on top.

    Shown are the agents' individuals, every candidate that was the best when it was evaluated, what people decided
    about, and the ancestors of all these. The rest is folded into its nearest shown ancestor. A dotted edge leads to a
    candidate that is no parent: the agent was shown it, and the child has lines that it brought.
    """
    form = "json" if terminal.json else form
    if form in ("svg", "png"):
        content = _figure(place, form, everything=everything, **look)
    elif form == "html":
        content = page_file(place, terminal, "graph", redact=redact).encode()
    else:
        shown = selection(place.history, limit, everything, expand)
        if form == "text":
            if output is not None:
                raise UsageError("expected one of json, svg, png, html as --format with -o, got text")
            terminal.show(draw(View.of(place.history, terminal), shown), fit="ellipsis")
            return
        content = (json.dumps(graph_record(place.history, shown), allow_nan=False) + "\n").encode()
    if output is not None:
        output.write_bytes(content)
        terminal.note(f"wrote {output}, {count(len(content), 'byte')}")
    elif form == "png" and sys.stdout.isatty():
        raise UsageError("expected a file for a picture: -o FILE.png")
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)


def _figure(place: Place, form: str, *, against: str, colour: str, dark: str, everything: bool) -> bytes:
    from evogit.page.figure import Look, png, svg
    from evogit.page.payload import FollowedRun

    payload = FollowedRun(place.repository, place.history.run).payload(read_only=True)
    theme = "dark" if dark else "light"
    look = Look(theme=theme, axis=against, colour=colour, everything=everything)  # type: ignore[arg-type]
    return svg(payload, look).encode() if form == "svg" else png(payload, look)
