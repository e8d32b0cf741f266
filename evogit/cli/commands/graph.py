"""`evogit graph`: who was bred from whom, as text, as a picture, as a page, or for other programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import click
from msgspec import Struct

from evogit.cli.lines.phylogeny import draw, selection
from evogit.cli.lines.view import SHORT, View, first_line
from evogit.cli.locate_run import Place
from evogit.cli.options.shared import REVISION, OutputPath, with_run, with_terminal
from evogit.cli.page_file import page_file
from evogit.cli.renamed import retired_option
from evogit.cli.terminal import Terminal
from evogit.cli.text import count
from evogit.core import UsageError
from evogit.review import graph_record, rows

AXES = ("time", "evaluations", "dollars")


class Wanted(Struct, frozen=True, kw_only=True):
    """What is to be drawn, and how."""

    shown: Callable[[], set[str]]
    everything: bool
    against: str
    colour: str
    dark: bool
    redact: bool


@click.command()
@click.option("-n", "limit", type=click.IntRange(min=2), metavar="N", help="At most the N most telling candidates.")
@click.option("--all", "everything", is_flag=True, help="Fold nothing.")
@retired_option("--expand", type=REVISION, multiple=True, instead="--all folds nothing")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "dot", "json", "svg", "png", "html", "tsv", "graphml"]),
    default="text",
    show_default=True,
    help="html: one file with all of the run, to send to somebody.",
)
@click.option("-o", "--output", type=OutputPath(dir_okay=False), help="A file to write, instead of standard output.")
@retired_option("--against", type=click.Choice(AXES), default="evaluations", instead="drawn by evaluations")
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
    expand: Sequence[str],
    form: str,
    output: Path | None,
    **options: Any,
) -> None:
    """Draw the phylogeny, the youngest candidate on top.

    Shown are the agents' individuals, every candidate that was the best when it was evaluated, what people decided
    about, and the ancestors of all these. The rest is folded into its nearest shown ancestor. A dotted edge leads to a
    candidate that is no parent: the agent was shown it, and the child has lines that it brought.
    """
    everything = options["everything"]

    def shown() -> set[str]:
        return selection(place.history, limit, everything, expand)

    if terminal.json:
        form = "json"
    if form in WRITERS:
        _write(terminal, WRITERS[form](place, terminal, Wanted(shown=shown, **options)), form, output)
    elif output is not None:
        raise UsageError(f"expected one of {', '.join(WRITERS)} as --format with -o, got {form}")
    else:
        terminal.show(draw(View.of(place.history, terminal), shown()), fit="ellipsis")


def _write(terminal: Terminal, content: str | bytes, form: str, output: Path | None) -> None:
    data = content.encode() if isinstance(content, str) else content
    if output is not None:
        output.write_bytes(data)
        terminal.note(f"wrote {output}, {count(len(data), 'byte')}")
    elif form == "png" and sys.stdout.isatty():
        raise UsageError("expected a file for a picture: -o FILE.png")
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)


# --- pictures and pages -----------------------------------------------------------------------------------------------


def _svg(place: Place, terminal: Terminal, wanted: Wanted) -> str:
    from evogit.page.figure import svg

    return svg(*_figure(place, wanted))


def _png(place: Place, terminal: Terminal, wanted: Wanted) -> bytes:
    from evogit.page.figure import png

    return png(*_figure(place, wanted))


def _figure(place: Place, wanted: Wanted) -> tuple[Any, Any]:
    from evogit.page.figure import Look
    from evogit.page.payload import FollowedRun

    payload = FollowedRun(place.repository, place.history.run).payload(read_only=True)
    look: dict[str, Any] = {"axis": wanted.against, "colour": wanted.colour, "everything": wanted.everything}
    return payload, Look(theme="dark" if wanted.dark else "light", **look)


def _html(place: Place, terminal: Terminal, wanted: Wanted) -> str:
    return page_file(place, terminal, "graph", redact=wanted.redact)


# --- for other programs -----------------------------------------------------------------------------------------------


def _json(place: Place, terminal: Terminal, wanted: Wanted) -> str:
    return json.dumps(graph_record(place.history, wanted.shown()), allow_nan=False) + "\n"


def _dot(place: Place, terminal: Terminal, wanted: Wanted) -> str:
    return "\n".join(dot(View.of(place.history, terminal), wanted.shown())) + "\n"


def dot(view: View, shown: Collection[str]) -> Iterator[str]:
    """The graph in Graphviz's language, edges from parent to child."""
    yield f'digraph "{_quoted(view.history.run)}" {{'
    yield '  rankdir=BT; node [shape=box, fontname="monospace"];'
    for row in rows(view.history, shown):
        commit = row.candidate.commit
        label = f"{commit[:SHORT]} {view.score(commit).plain}"
        label += f"\\n{_quoted(row.candidate.title)}"
        yield f'  "{commit}" [label="{label}"];'
        for index, edge in enumerate(row.edges):
            style = "dotted" if edge.inspiration else "solid" if edge.direct else "dashed"
            yield f'  "{edge.parent}" -> "{commit}" [style={style}, color={"black" if index == 0 else "gray"}];'
    yield "}"


def _quoted(text: str) -> str:
    return first_line(text).replace("\\", "\\\\").replace('"', '\\"')


def _tsv(place: Place, terminal: Terminal, wanted: Wanted) -> str:
    """The columns of `log --csv`, all candidates."""
    from evogit.review.timeline import table

    lines = table(place.repository, place.history, {each.commit for each in place.history.phylogeny})
    return "".join("\t".join("" if cell is None else _cell(cell) for cell in line) + "\n" for line in lines)


def _cell(value: object) -> str:
    return first_line(" ".join(value.split())) if isinstance(value, str) else str(value)


def _graphml(place: Place, terminal: Terminal, wanted: Wanted) -> str:
    """The shown candidates with edges from child to origin."""
    from evogit.history.graphml import graphml

    record, nodes = graph_record(place.history, wanted.shown()), dict[str, dict[str, Any]]()
    for each in record["candidates"]:
        value = place.history.fitness(each["commit"])
        told: dict[str, Any] = {key: _cell(each[key]) for key in ("agent", "host", "operator", "strategy", "title")}
        told |= {"status": each["status"] or "waiting", "number": each["number"], "time": each["time"]}
        nodes[each["commit"]] = told if value is None else {**told, "value": value}
    edges = {(each["child"], each["parent"]): {key: each[key] for key in ("kind", "index")} for each in record["edges"]}
    return graphml(record["run"], nodes, edges)


WRITERS: dict[str, Callable[[Place, Terminal, Wanted], str | bytes]] = {
    "dot": _dot,
    "json": _json,
    "svg": _svg,
    "png": _png,
    "html": _html,
    "tsv": _tsv,
    "graphml": _graphml,
}
