"""`evogit rm`: removes a run; what was landed and merged stays."""

from __future__ import annotations

import click
from rich.text import Text

from evogit.cli.asking.yes_no import asks, confirm
from evogit.cli.locate_run import find_repository
from evogit.cli.options.shared import with_repo, with_terminal
from evogit.cli.terminal import Terminal
from evogit.cli.text import count, escape
from evogit.review import SCHEMA
from evogit.review.removing import Remains, remains, remove


@click.command()
@click.argument("run")
@asks
@with_repo
@with_terminal
def rm(repo: str | None, terminal: Terminal, run: str, yes: bool, dry_run: bool) -> None:
    """Remove RUN: its candidates, journals, branches and notes. What you merged of it stays.

    Git collects the objects in its own time, or with `git gc --prune=now`. Copies on other hosts stay there. This
    cannot be undone.
    """
    repository = find_repository(repo)
    found = remains(repository, run)
    _tell(terminal, found)
    if not dry_run:
        if not yes:
            confirm(terminal)
        found = remove(repository, run)
    if terminal.json:
        terminal.data({"schema": SCHEMA, "run": run, "removed": not dry_run, "refs": found.refs})
    if dry_run:
        terminal.note("nothing was changed", "dim")
    elif repository.created and not repository.runs():
        terminal.note(f"{escape(str(repository.path))} was made for runs and has none now; you can delete it")


def _tell(terminal: Terminal, found: Remains) -> None:
    terminal.note(Text.assemble(("remove  ", "bold"), f"{found.run}, with all its candidates, for good"))
    terminal.note(f"  {count(len(found.refs), 'ref')}, of which {len(found.branches):,} are plain branches")
    for branch in found.human:
        terminal.note(f"    {escape(branch)}, with what you committed there", "yellow")
    others = [branch for branch in found.branches if branch not in found.human]
    for branch in others[:10]:
        terminal.note(f"    {escape(branch)}", "dim")
    if others[10:]:
        terminal.note(f"    and {len(others) - 10} more", "dim")
