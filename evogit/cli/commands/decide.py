"""`evogit promote`, `prune`, `note`, `guide`, `undo`: decisions about the graph."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click
from rich.text import Text

from evogit.cli.confirming import asks, confirm
from evogit.cli.deciding import decision_table, decision_to_undo, plan_lines
from evogit.cli.lines.view import SHORT, View
from evogit.cli.locate_run import Place
from evogit.cli.options.shared import REVISION, reason_option, with_run, with_terminal
from evogit.cli.terminal import Terminal
from evogit.core import UsageError
from evogit.events import Decision
from evogit.repository import clean
from evogit.review import decide, effect, resolve
from evogit.review.decisions import changes_record, decision_record, follow_code, told_record
from evogit.review.landing import follow_undo

why = click.option("-m", "--reason", metavar="WHY", required=True, help="Why; it is kept with the decision.")


@click.command()
@click.argument("rev", type=REVISION)
@why
@asks
@with_run
@with_terminal
def promote(place: Place, terminal: Terminal, rev: str, reason: str, yes: bool, dry_run: bool) -> None:
    """Favour REV as a parent. The population never collapses to one candidate."""
    _act(place, terminal, _decision(place, "promote", rev, reason), (), yes, dry_run)


@click.command()
@click.argument("rev", type=REVISION)
@click.option("--all", "subtree", is_flag=True, help="Also everything that was or will be bred from it.")
@click.option("--carriers", is_flag=True, help="Also all that copied code of its step; later copies are refused.")
@why
@asks
@with_run
@with_terminal
def prune(
    place: Place, terminal: Terminal, rev: str, subtree: bool, carriers: bool, reason: str, yes: bool, dry_run: bool
) -> None:
    """Let nothing be bred from REV any more. Nothing is deleted.

    Candidates carry its code if they have a definition that its step added or changed, or three lines of it in a row,
    and descend from it or were shown it.
    """
    decision = _decision(place, "prune", rev, reason, subtree)
    _act(place, terminal, *follow_code(place.repository, place.history, decision, carriers=carriers), yes, dry_run)


@click.command()
@click.argument("rev", type=REVISION)
@why
@asks
@with_run
@with_terminal
def note(place: Place, terminal: Terminal, rev: str, reason: str, yes: bool, dry_run: bool) -> None:
    """Say something about REV, for people: `show` and the page tell it, and it changes nothing."""
    _act(place, terminal, _decision(place, "note", rev, reason), (), yes, dry_run)


@click.command()
@click.argument("text", required=False)
@asks
@with_run
@with_terminal
def guide(place: Place, terminal: Terminal, text: str | None, yes: bool, dry_run: bool) -> None:
    """Say TEXT to all agents, in every later brief. Several add up; without TEXT: what is in force."""
    if text is not None:
        act = Decision(kind="guide", by=place.repository.user, reason=clean(text))
        _act(place, terminal, act, (), yes, dry_run)
        return
    said = [entry for entry in place.history.in_force() if getattr(entry.event, "kind", "") == "guide"]
    if terminal.json:
        for entry in said:
            terminal.data(decision_record(entry, True))
        return
    none = Text("no guidance yet; give some with `evogit guide TEXT`", "dim")
    terminal.show(decision_table((entry, True) for entry in said) or [none])


@click.command()
@click.argument("decision", required=False)
@reason_option
@asks
@with_run
@with_terminal
def undo(place: Place, terminal: Terminal, decision: str | None, reason: str, yes: bool, dry_run: bool) -> None:
    """Take a decision back: the last one, or DECISION as `evogit log --decisions` names it.

    A refusal by a task's reviewer is taken back by naming it. To undo an undo is to decide again.
    """
    found = decision_to_undo(place.history, decision)
    act = Decision(kind="undo", by=place.repository.user, reason=clean(reason), undoes=found.id)
    _act(place, terminal, act, (), yes, dry_run)
    if not dry_run and (followed := follow_undo(place.repository, place.history, found.id)):
        terminal.note(followed)


def _decision(place: Place, kind: Any, rev: str, reason: str, subtree: bool = False) -> Decision:
    if not clean(reason):
        raise UsageError("expected a reason: -m WHY")
    commit = resolve(place.history, rev).commit
    by = place.repository.user
    return Decision(kind=kind, by=by, reason=clean(reason), candidates=(commit,), subtree=subtree)


def _act(
    place: Place, terminal: Terminal, decision: Decision, remarks: Iterable[str], yes: bool, dry_run: bool
) -> None:
    """Show the plan, ask, decide, and say how to take it back."""
    view, change = View.of(place.history, terminal), effect(place.history, decision)
    for line in plan_lines(view, decision, change):
        terminal.note(line)
    for remark in remarks:
        terminal.note(f"  {remark}")
    if dry_run:
        if terminal.json:
            terminal.data({**told_record(decision), **changes_record(change)})
        terminal.note("nothing was changed", "dim")
        return
    if not yes:
        confirm(terminal)
    entry = decide(place, decision)
    if terminal.json:
        terminal.data({**decision_record(entry, True), **changes_record(change)})
    terminal.note(Text.assemble(("undo with  ", "dim"), place.hint(f"undo {entry.id[:SHORT]}")))
