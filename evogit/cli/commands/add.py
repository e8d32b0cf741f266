"""`evogit add`: people's commits become candidates like any other."""

from __future__ import annotations

from collections.abc import Mapping

import click
from rich.text import Text

from evogit.cli.lines.view import SHORT, View, first_line
from evogit.cli.locate_run import Place
from evogit.cli.options.shared import reason_option, with_run, with_terminal
from evogit.cli.terminal import Terminal
from evogit.engine.people_commits import Adding
from evogit.review import SCHEMA


@click.command()
@click.argument("revs", metavar="REV...", nargs=-1, required=True)
@reason_option
@click.option("--dry-run", is_flag=True, help="Show what would be added, and add nothing.")
@click.option("-y", "--yes", is_flag=True, help="Accepted for consistency; `add` never asks.")
@with_run
@with_terminal
def add(place: Place, terminal: Terminal, revs: tuple[str, ...], reason: str, dry_run: bool, yes: bool) -> None:
    """Make the commits that REV... name (a branch, a tag, an id) candidates, as they are.

    A running engine evaluates them within seconds; without one they wait for the next `evogit run`. All are refused if
    one changes what may not change.
    """
    adding = Adding(place)
    commits = list(dict.fromkeys(place.repository.branches.commit(rev) for rev in revs))
    for commit in commits:
        adding.check(commit)
    if dry_run:
        _tell_plan(terminal, adding, commits)
        return
    added = [commit for commit in commits if adding.known(commit) is None and adding.add(commit, reason)]
    known = {commit: adding.known(commit) or commit for commit in commits if commit not in added}
    if terminal.json:
        candidates = [place.history.phylogeny[commit] for commit in added]
        records = [{"commit": each.commit, "parents": list(each.parents), "title": each.title} for each in candidates]
        terminal.data({"schema": SCHEMA, "added": records, "known": known})
    view = View.of(place.history, terminal)
    for commit in added:
        candidate = place.history.phylogeny[commit]
        after = " and ".join(parent[:SHORT] for parent in candidate.parents)
        terminal.note(Text.assemble(("added  ", "bold"), view.line(candidate), (f"  after {after}", "dim")))
    _tell_known(terminal, known)
    if added and place.repository.engines(place.history.run).alive():
        terminal.note("the running engine evaluates it within seconds", "dim")
    elif added:
        terminal.note(Text.assemble(("evaluate with  ", "dim"), place.hint("run")))


def _tell_plan(terminal: Terminal, adding: Adding, commits: list[str]) -> None:
    known = {commit: first for commit in commits if (first := adding.known(commit))}
    new = [commit for commit in commits if commit not in known]
    if terminal.json:
        would = [{"commit": commit, "parents": list(adding.parents(commit))} for commit in new]
        terminal.data({"schema": SCHEMA, "would_add": would, "known": known})
    for commit in new:
        title = first_line(adding.run.repository.message(commit))
        after = " and ".join(parent[:SHORT] for parent in adding.parents(commit))
        terminal.note(Text.assemble(("add  ", "bold"), f"{commit[:SHORT]}  {title}", (f"  after {after}", "dim")))
    _tell_known(terminal, known)
    terminal.note("nothing was changed", "dim")


def _tell_known(terminal: Terminal, known: Mapping[str, str]) -> None:
    for commit, first in known.items():
        same = "is a candidate" if commit == first else f"has the files of {first[:SHORT]}, which is a candidate"
        terminal.note(f"{commit[:SHORT]} {same} already")
