"""`evogit graph`: who was bred from whom, as text, DOT or JSON."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Sequence

import click

from evogit.cli.locate_run import Place
from evogit.cli.phylogeny import draw, selection
from evogit.cli.shared_options import REVISION, with_run, with_terminal
from evogit.cli.terminal import Terminal
from evogit.cli.view import SHORT, View, first_line
from evogit.history import History
from evogit.review import graph_record, rows


@click.command()
@click.option("-n", "limit", type=click.IntRange(min=2), metavar="N", help="At most the N most telling candidates.")
@click.option("--all", "everything", is_flag=True, help="Fold nothing.")
@click.option("--expand", type=REVISION, multiple=True, metavar="REV", help="Unfold the dead ends below REV.")
@click.option("--format", "form", type=click.Choice(["text", "dot", "json"]), default="text", show_default=True)
@with_run
@with_terminal
def graph(
    place: Place, terminal: Terminal, limit: int | None, everything: bool, expand: Sequence[str], form: str
) -> None:
    """Draw the phylogeny, the youngest candidate on top.

    Shown are the agents' individuals, every candidate that was the best when it was evaluated, what people decided
    about, and the ancestors of all these. The rest is folded into its nearest shown ancestor. A dotted edge leads to a
    candidate that is no parent: the agent was shown it, and the child has lines that it brought.
    """
    history = place.history
    shown = selection(history, limit, everything, expand)
    if terminal.json or form == "json":
        terminal.data(graph_record(history, shown))
    elif form == "dot":
        sys.stdout.write("\n".join(dot(history, shown)) + "\n")
    else:
        terminal.show(draw(View.of(history, terminal), shown))


def dot(history: History, shown: Collection[str]) -> Iterator[str]:
    """The graph in Graphviz's language, edges from parent to child."""
    yield f'digraph "{_quoted(history.run)}" {{'
    yield '  rankdir=BT; node [shape=box, fontname="monospace"];'
    for row in rows(history, shown):
        commit, value = row.candidate.commit, history.fitness(row.candidate.commit)
        label = f"{commit[:SHORT]} {'fail' if value is None else _value(history, commit, value)}"
        label += f"\\n{_quoted(row.candidate.title)}"
        yield f'  "{commit}" [label="{label}"];'
        for index, edge in enumerate(row.edges):
            style = "dotted" if edge.inspiration else "solid" if edge.direct else "dashed"
            yield f'  "{edge.parent}" -> "{commit}" [style={style}, color={"black" if index == 0 else "gray"}];'
    yield "}"


def _value(history: History, commit: str, value: float) -> str:
    margin = history.scores.margin(commit)
    return f"{value:.6g} ± {margin:.2g}" if margin else f"{value:.6g}"


def _quoted(text: str) -> str:
    return first_line(text).replace("\\", "\\\\").replace('"', '\\"')
