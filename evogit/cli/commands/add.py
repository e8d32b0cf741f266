"""`evogit add`: people's commits become candidates like any other."""

from __future__ import annotations

from typing import Any

import click
from rich.text import Text

from evogit.cli.locate_run import Place
from evogit.cli.shared_options import with_run, with_terminal
from evogit.cli.terminal import Terminal
from evogit.cli.view import SHORT, View
from evogit.engine.people_commits import Adding
from evogit.review import SCHEMA


@click.command()
@click.argument("revs", metavar="REV...", nargs=-1, required=True)
@click.option("-m", "--reason", metavar="WHY", default="", help="Why; it is kept with each candidate.")
@with_run
@with_terminal
def add(place: Place, terminal: Terminal, revs: tuple[str, ...], reason: str) -> None:
    """Make the commits that REV... name (a branch, a tag, an id) candidates, as they are.

    A running engine evaluates them within seconds; without one they wait for the next `evogit run`. All are refused if
    one changes what may not change.
    """
    adding = Adding(place)
    commits = list(dict.fromkeys(place.repository.branches.commit(rev) for rev in revs))
    for commit in commits:
        adding.check(commit)
    added = [commit for commit in commits if adding.known(commit) is None and adding.add(commit, reason)]
    known = {commit: adding.known(commit) or commit for commit in commits if commit not in added}
    if terminal.json:
        terminal.data({"schema": SCHEMA, "added": [_record(place, commit) for commit in added], "known": known})
    _tell(place, terminal, added, known)


def _record(place: Place, commit: str) -> dict[str, Any]:
    candidate = place.history.phylogeny[commit]
    return {"commit": commit, "parents": list(candidate.parents), "title": candidate.title}


def _tell(place: Place, terminal: Terminal, added: list[str], known: dict[str, str]) -> None:
    view = View.of(place.history, terminal)
    for commit in added:
        candidate = place.history.phylogeny[commit]
        after = " and ".join(parent[:SHORT] for parent in candidate.parents)
        terminal.note(Text.assemble(("added  ", "bold"), view.line(candidate), (f"  after {after}", "dim")))
    for commit, first in known.items():
        same = "is a candidate" if commit == first else f"has the files of {first[:SHORT]}, which is a candidate"
        terminal.note(f"{commit[:SHORT]} {same} already")
    if added and place.repository.engines(place.history.run).alive():
        terminal.note("the running engine evaluates it within seconds", "dim")
    elif added:
        terminal.note(Text.assemble(("evaluate with  ", "dim"), place.hint("run")))
