"""`evogit drop`: takes one step out of a candidate and keeps the rest."""

from __future__ import annotations

import click
from rich.text import Text

from evogit.cli.lines.next_steps import next_steps
from evogit.cli.lines.view import SHORT, View
from evogit.cli.locate_run import Place
from evogit.cli.new_candidate import outcome
from evogit.cli.options.shared import REVISION, with_run, with_terminal
from evogit.cli.terminal import Terminal
from evogit.review import SCHEMA, resolve
from evogit.review.crossing import propose_without, without


@click.command()
@click.argument("step", type=REVISION)
@click.argument("rev", type=REVISION, default="best")
@click.option("-m", "--reason", metavar="WHY", default="", help="Why; it is kept with the candidate.")
@click.option("--dry-run", is_flag=True, help="Say whether it can be taken out, and make no candidate.")
@with_run
@with_terminal
def drop(place: Place, terminal: Terminal, step: str, rev: str, reason: str, dry_run: bool) -> None:
    """Take STEP, what it changed against its first parent, out of REV (the best one), and keep the rest.

    A running engine evaluates the new candidate within seconds; without one it waits for the next `evogit run`.
    `evogit land` evaluates it, too, before it makes a branch.
    """
    candidate, taken = resolve(place.history, rev), resolve(place.history, step)
    tree = without(place, candidate, taken)
    known = place.history.trees.get(tree)
    made = None if known or dry_run else propose_without(place, candidate, taken, tree, reason)
    known = None if made else place.history.trees.get(tree)
    if terminal.json:
        about = {"schema": SCHEMA, "candidate": candidate.commit, "step": taken.commit, "tree": tree}
        terminal.data({**about, "added": made, "known": known})
        return
    view = View.of(place.history, terminal)
    terminal.note(Text.assemble(("drop  ", "bold"), view.line(taken)))
    terminal.note(Text.assemble(("of    ", "bold"), view.line(candidate)))
    for line in outcome(place, terminal, made, known):
        terminal.note(line)
    if (found := made or known) and not place.repository.created:
        for line in next_steps(place, f"land {found[:SHORT]} --squash"):
            terminal.note(line)
