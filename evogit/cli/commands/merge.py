"""`evogit merge`: merges candidates by hand, puts a step of one on another, or takes it out."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import click
from rich.text import Text

from evogit.cli.lines.summary import next_steps
from evogit.cli.lines.view import SHORT, View
from evogit.cli.locate_run import Place
from evogit.cli.options.shared import REVISION, reason_option, with_run, with_terminal
from evogit.cli.terminal import Terminal, table
from evogit.cli.text import count, escape
from evogit.core import UsageError
from evogit.review import SCHEMA, resolve
from evogit.review.crossing import Crossed, cross, propose_crossed, propose_without
from evogit.review.crossing import without as without_step
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


@click.command()
@click.argument("a", type=REVISION)
@click.argument("b", type=REVISION, required=False)
@click.option("--step", is_flag=True, help="Graft only A's step, what it changed against its first parent, onto B.")
@click.option("--without", is_flag=True, help="Take A's step out of B (default: the best), and keep the rest.")
@click.option(
    "--strategy",
    type=click.Choice(SETTLED_HERE),
    default="fitter",
    show_default=True,
    help="Whose side wins a conflict: the better parent's, a random one, or by definitions of Python.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Random seed of --strategy random.")
@reason_option
@click.option("--dry-run", is_flag=True, help="Show the outcome, and make no candidate.")
@with_run
@with_terminal
def merge(
    place: Place,
    terminal: Terminal,
    a: str,
    b: str | None,
    step: bool,
    without: bool,
    strategy: str,
    seed: int,
    reason: str,
    dry_run: bool,
) -> None:
    """Merge the candidates A and B into a new one, and show what was in conflict and how it was settled.

    A running engine evaluates it within seconds; without one it waits for the next `evogit run`.
    """
    if step and without:
        raise UsageError("expected --step or --without, got both")
    if without:
        _drop(place, terminal, a, b or "best", reason, dry_run)
        return
    if b is None:
        raise UsageError("expected two candidates: evogit merge A B")
    how: Crossing = "graft" if step else "merge"
    names = (b, a) if step else (a, b)
    parents = (resolve(place.history, names[0]), resolve(place.history, names[1]))
    crossed = asyncio.run(cross(place.repository, place.history, how, parents, strategy, seed))
    new = crossed.known is None and not dry_run
    made = propose_crossed(place, crossed, reason) if new else None
    known = None if made else place.history.trees.get(crossed.merged.tree)
    if terminal.json:
        terminal.data(_record(crossed, made, known))
        return
    for line in (*_told(View.of(place.history, terminal), crossed), *_outcome(place, terminal, made, known)):
        terminal.note(line)


def _drop(place: Place, terminal: Terminal, step: str, rev: str, reason: str, dry_run: bool) -> None:
    candidate, taken = resolve(place.history, rev), resolve(place.history, step)
    tree = without_step(place.repository, place.history, candidate, taken)
    known = place.history.trees.get(tree)
    made = None if known or dry_run else propose_without(place, candidate, taken, tree, reason)
    known = None if made else place.history.trees.get(tree)
    if terminal.json:
        about = {"schema": SCHEMA, "candidate": candidate.commit, "step": taken.commit, "tree": tree}
        terminal.data({**about, "added": made, "known": known})
        return
    view = View.of(place.history, terminal)
    lines: list[Text | str] = [
        Text.assemble(("without  ", "bold"), view.line(taken)),
        Text.assemble(("of       ", "bold"), view.line(candidate)),
        *_outcome(place, terminal, made, known),
    ]
    if (commit := made or known) and not place.repository.created:
        lines += next_steps(place, f"land {commit[:SHORT]} --squash")
    for line in lines:
        terminal.note(line)


def _outcome(place: Place, terminal: Terminal, made: str | None, known: str | None) -> Iterator[Text | str]:
    if made:
        yield Text.assemble(("added  ", "bold"), View.of(place.history, terminal).line(place.history.phylogeny[made]))
        if place.repository.engines(place.history.run).alive():
            yield Text("the running engine evaluates it within seconds", "dim")
        else:
            yield Text.assemble(("evaluate with  ", "dim"), place.hint("run"))
    elif known:
        yield f"that gives the files of {known[:SHORT]}, which is a candidate already"
    else:
        yield Text("no candidate was made", "dim")


def _told(view: View, crossed: Crossed) -> Iterator[Text]:
    first, second = crossed.parents
    told = (("merge", first), ("with ", second)) if crossed.how == "merge" else (("graft", second), ("onto ", first))
    for head, candidate in told:
        yield Text.assemble((f"{head}  ", "bold"), view.line(candidate))
    settled, decisions = crossed.merged.settled, crossed.merged.conflicts
    yield Text(f"{count(decisions, 'conflict')} settled:" if settled else "no conflict")
    rows = []
    for each in settled:
        path = escape(each.path) or "(renamed files)"
        fitter = f", {crossed.fitter.commit[:SHORT]}" if each.how in (FITTER, FUNCTION) else ""
        rows.append([f"  {path}", str(each.count or ""), KINDS[each.kind], each.how + fitter])
    yield from table(rows, "lrll")


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
