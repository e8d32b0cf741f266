"""`evogit merge` and `evogit graft`: merges and grafts of candidates by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import click
from rich.text import Text

from evogit.cli.lines.view import SHORT, View
from evogit.cli.locate_run import Place
from evogit.cli.new_candidate import outcome
from evogit.cli.options.shared import REVISION, with_run, with_terminal
from evogit.cli.terminal import Terminal, table
from evogit.cli.text import count, escape
from evogit.repository import Settlement
from evogit.review import SCHEMA, resolve
from evogit.review.crossing import Crossed, cross, propose_crossed
from evogit.selection.conflict_settlers import Crossing
from evogit.selection.merge_strategies import FITTER, FUNCTION, SETTLED_HERE

KINDS = {
    "lines": "lines",
    "deleted": "changed by one side, deleted in the other",
    "binary": "no text to merge",
    "mode": "executable or not",
    "folder": "a file here, a folder there",
    "rename": "names",
}
"""What a conflict is about, as it is told."""


def crossing(command: Callable[..., None]) -> Callable[..., None]:
    """The options that both commands have."""
    for option in (
        click.option(
            "--strategy",
            type=click.Choice(SETTLED_HERE),
            default="fitter",
            show_default=True,
            help="Whose side wins a conflict: the better parent's, a random one, or by definitions of Python.",
        ),
        click.option("--seed", type=int, default=0, show_default=True, help="For --strategy random."),
        click.option("-m", "--reason", metavar="WHY", default="", help="Why; it is kept with the candidate."),
        click.option("--dry-run", is_flag=True, help="Show the outcome, and make no candidate."),
    ):
        command = option(command)
    return command


@click.command()
@click.argument("a", type=REVISION)
@click.argument("b", type=REVISION)
@crossing
@with_run
@with_terminal
def merge(place: Place, terminal: Terminal, a: str, b: str, **options: Any) -> None:
    """Merge the candidates A and B into a new one, and show what was in conflict and how it was settled.

    A running engine evaluates it within seconds; without one it waits for the next `evogit run`.
    """
    _cross(place, terminal, "merge", (a, b), **options)


@click.command()
@click.argument("edge", type=REVISION)
@click.argument("onto", type=REVISION)
@crossing
@with_run
@with_terminal
def graft(place: Place, terminal: Terminal, edge: str, onto: str, **options: Any) -> None:
    """Graft the step to EDGE, what it changed against its first parent, onto the candidate ONTO.

    A running engine evaluates the new candidate within seconds; without one it waits for the next `evogit run`.
    """
    _cross(place, terminal, "graft", (onto, edge), **options)


def _cross(
    place: Place,
    terminal: Terminal,
    how: Crossing,
    names: tuple[str, str],
    *,
    strategy: str,
    seed: int,
    reason: str,
    dry_run: bool,
) -> None:
    parents = (resolve(place.history, names[0]), resolve(place.history, names[1]))
    crossed = asyncio.run(cross(place.repository, place.history, how, parents, strategy, seed))
    new = crossed.known is None and not dry_run
    made = propose_crossed(place, crossed, reason) if new else None
    known = None if made else place.history.trees.get(crossed.merged.tree)
    if terminal.json:
        terminal.data(_record(crossed, made, known))
        return
    for line in (*_told(View.of(place.history, terminal), crossed), *outcome(place, terminal, made, known)):
        terminal.note(line)


def _told(view: View, crossed: Crossed) -> Iterator[Text]:
    """What was crossed, and how each conflict was settled."""
    first, second = crossed.parents
    told = (("merge", first), ("with ", second)) if crossed.how == "merge" else (("graft", second), ("onto ", first))
    for head, candidate in told:
        yield Text.assemble((f"{head}  ", "bold"), view.line(candidate))
    settled, decisions = crossed.merged.settled, crossed.merged.conflicts
    yield Text(f"{count(decisions, 'conflict')} settled:" if settled else "no conflict")
    yield from table([_row(each, crossed) for each in settled], "lrll")


def _row(settlement: Settlement, crossed: Crossed) -> list[str]:
    path = escape(settlement.path) or "(renamed files)"
    fitter = f", {crossed.fitter.commit[:SHORT]}" if settlement.how in (FITTER, FUNCTION) else ""
    return [f"  {path}", str(settlement.count or ""), KINDS[settlement.kind], settlement.how + fitter]


def _record(crossed: Crossed, made: str | None, known: str | None) -> dict[str, Any]:
    merged = crossed.merged
    settled = [{"path": e.path, "kind": e.kind, "how": e.how, "count": e.count} for e in merged.settled]
    return {
        "schema": SCHEMA,
        "operator": crossed.how,
        "parents": [parent.commit for parent in crossed.parents],
        "strategy": crossed.strategy,
        "title": crossed.title,
        "tree": merged.tree,
        "conflicts": merged.conflicts,
        "settled": settled,
        "added": made,
        "known": known,
    }
