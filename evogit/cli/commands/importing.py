"""`evogit import`: what another system found becomes a run."""

from __future__ import annotations

from pathlib import Path

import click
from rich.text import Text

from evogit.adopt import find_task, recognise
from evogit.adopt.past_runs import read_past
from evogit.cli.locate_run import place_to_run, typed
from evogit.cli.options.shared import name_option, with_repo, with_terminal
from evogit.cli.terminal import Terminal
from evogit.cli.text import count
from evogit.core import NotFoundError
from evogit.review.importing import bring_in


@click.command(name="import")
@click.argument("path", type=click.Path(path_type=Path, exists=True))
@click.option("--task", metavar="FOLDER", help="The task that it was a run of; default: the nearest one above PATH.")
@name_option
@with_repo
@with_terminal
def import_(terminal: Terminal, repo: str | None, name: str | None, path: Path, task: str | None) -> None:
    """Make a run of what another system found at PATH.

    PATH is a checkpoint or an output folder of OpenEvolve or SkyDiscover, a ShinkaEvolve database or results folder, or
    an autoresearch repository with results.tsv or the log of a session (.auto/log.jsonl). Its programs become
    candidates with their lineage, and the scores that the other system gave them, to look at with `log`, `graph`,
    `show`, `serve`. `evogit rescore` evaluates the best of them here; then `run` goes on from them.
    """
    found = find_task(task or _task_above(path))
    changeable = [each for each in found.seed_files() if found.is_editable(each)]
    program = changeable[0] if len(changeable) == 1 else ""
    past = read_past(path, program, found.primary.name, found.is_editable)
    run = name or found.name
    repository = place_to_run(found, repo, run)
    done = bring_in(repository, found, run, past)
    if terminal.json:
        about = {"schema": 1, "run": run, "system": past.system, "repository": str(repository.path)}
        left_out = {"left_out": done.refused, "unread": past.unread, "orphans": past.orphans}
        terminal.data({**about, "candidates": done.candidates, "same": done.same, **left_out})
        return
    left = f", {done.same} were the same as others" if done.same else ""
    left += f", {done.refused} had nothing that may change" if done.refused else ""
    left += f", {past.unread} are there twice, or their programs are gone" if past.unread else ""
    terminal.note(Text(f"{run} has {count(done.candidates, 'candidate')} of {past.system}{left}"))
    if past.orphans:
        terminal.note(f"{past.system} has dropped the parents of {past.orphans}, which descend from the seed here")
    where = task or _task_above(path)
    named = f" --name {run}" if name else ""
    terminal.note(f"look  {typed(repository, f'log{named}')}")
    terminal.note(
        f"then  {typed(repository, f'rescore {where}{named}')}, and {typed(repository, f'run {where}{named}')}"
    )


def _task_above(path: Path) -> str:
    """The nearest folder above that is a task of another system. Raise NotFoundError if there is none."""
    for folder in (path, *path.resolve().parents):
        if folder.is_dir() and recognise(folder):
            return str(folder)
    raise NotFoundError(f"expected a task in a folder above {path}, found none; name it with --task FOLDER")
