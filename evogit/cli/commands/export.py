"""`evogit export`: a candidate's files, for a person to use."""

from __future__ import annotations

import json
from pathlib import Path

import click

from evogit.cli.lines.view import SHORT
from evogit.cli.locate_run import Place
from evogit.cli.options.shared import REVISION, OutputPath, with_run, with_terminal
from evogit.cli.terminal import Terminal
from evogit.cli.text import count, escape
from evogit.core import NotFoundError
from evogit.review import SCHEMA, resolve
from evogit.review.export import check_empty
from evogit.review.export import export as write
from evogit.review.json_records import front_record


@click.command()
@click.argument("rev", type=REVISION)
@click.argument("folder", type=OutputPath(), metavar="DIR")
@with_run
@with_terminal
def export(place: Place, terminal: Terminal, rev: str, folder: Path) -> None:
    """Write the files of REV into DIR, which must be empty or absent.

    With several objectives `front` is all that are unbeaten, each in a folder named by its id, and front.json.

    Links that lead out of DIR, submodules and unsafe paths are left out and named.
    """
    if rev == "front":
        _export_front(place, terminal, folder)
        return
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


def _export_front(place: Place, terminal: Terminal, folder: Path) -> None:
    found = front_record(place.history)
    if not found or not found["members"]:
        raise NotFoundError(
            f"expected a run with several objectives (--selector pareto:over=metrics), got {place.history.run}"
        )
    check_empty(folder)
    for member in found["members"]:
        commit = member["commit"]
        for path, reason in write(place.repository, place.history.phylogeny[commit], folder / commit[:SHORT]).skipped:
            terminal.note(f"left out {commit[:SHORT]}/{escape(path)}: {escape(reason)}", "yellow")
    (folder / "front.json").write_text(
        json.dumps({"schema": SCHEMA, "run": place.history.run, **found}, indent=2) + "\n"
    )
    if terminal.json:
        terminal.data({"schema": SCHEMA, "folder": str(folder), **found})
    else:
        terminal.note(f"{count(len(found['members']), 'candidate')} and front.json in {folder}")
