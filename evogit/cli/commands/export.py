"""`evogit export`: a candidate's files, for a person to use."""

from __future__ import annotations

from pathlib import Path

import click

from evogit.cli.options import REVISION, with_run, with_terminal
from evogit.cli.place import Place
from evogit.cli.terminal import Terminal
from evogit.cli.text import count, escape
from evogit.review import SCHEMA, resolve
from evogit.review.export import export as write


@click.command()
@click.argument("rev", type=REVISION)
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@with_run
@with_terminal
def export(place: Place, terminal: Terminal, rev: str, folder: Path) -> None:
    """Write the files of REV into DIR, which must be empty or absent.

    Links that lead out of DIR, submodules and unsafe paths are left out and named.
    """
    candidate = resolve(place.history, rev)
    done = write(place.repository, candidate, folder)
    for path, reason in done.skipped:
        terminal.note(f"left out {escape(path)}: {escape(reason)}", "yellow")
    if terminal.json:
        skipped = [{"path": path, "reason": reason} for path, reason in done.skipped]
        where = {"commit": candidate.commit, "folder": str(folder), "files": done.files, "skipped": skipped}
        terminal.data({"schema": SCHEMA, **where})
    else:
        terminal.note(f"{count(done.files, 'file')} of {candidate.commit[:7]} in {folder}")
