"""`evogit lessons`: sentences that steps of runs proved, which briefs of later runs tell."""

from __future__ import annotations

import asyncio

import click
from msgspec import to_builtins
from msgspec.structs import replace
from rich.text import Text

from evogit.cli.lines.view import SHORT, first_line
from evogit.cli.locate_run import find_repository, open_place, task_of
from evogit.cli.options.shared import name_option, sandbox_option, task_option, with_repo, with_terminal
from evogit.cli.terminal import Terminal, table
from evogit.core import RefusedError, UsageError
from evogit.history.context import StoredRun
from evogit.history.lessons import kept_lessons, lesson_line
from evogit.review import SCHEMA, resolve
from evogit.review.lessons import draft_lesson, replay


@click.command()
@click.argument("action", type=click.Choice(["list", "add", "drop", "check"]), default="list")
@click.argument("what", required=False, metavar="[REV|N]")
@click.option("--text", default="", metavar="SENTENCE", help="The lesson; default: title and reason of the step.")
@task_option
@sandbox_option
@name_option
@with_repo
@with_terminal
def lessons(
    terminal: Terminal,
    repo: str | None,
    name: str | None,
    task: str | None,
    action: str,
    what: str | None,
    text: str,
    sandbox: str,
) -> None:
    """List what steps of this repository's runs taught; the briefs of later runs tell what fits their goal and files.

    `add [REV]` (default: the best) evaluates the change of REV on up to two candidates that lack it, and keeps the
    lesson only if the gain is there beyond noise, too. `check` evaluates those of a run again on other candidates and
    withdraws what fails; `drop N` withdraws number N of the list.
    """
    repository = find_repository(repo)
    sources = [(repository, run) for run in repository.runs()]
    if action in ("add", "check"):
        place = open_place(repo, name)
        context = place.about(task_of(place.history.run, repo, task))
        new = [draft_lesson(context, resolve(place.history, what or "best"), text)] if action == "add" else []
        for lesson in new or [each for each in place.history.lessons.values() if not each.withdrawn]:
            proven, failure = asyncio.run(replay(context, lesson, sandbox))
            if failure and new:
                raise RefusedError(f"the lesson of {lesson.step[:SHORT]} is not kept: {failure}")
            place.journal.append(replace(proven, by=repository.user, withdrawn=failure))
    kept = kept_lessons(sources)
    if action == "drop":
        number = int(what) if what and what.isdecimal() else 0
        if not 0 < number <= len(kept):
            raise UsageError(f"expected the number of a lesson (1 to {len(kept)}), got {what}; see `evogit lessons`")
        (run, lesson), by = kept[number - 1], repository.user
        StoredRun.open(repository, run).journal.append(replace(lesson, by=by, withdrawn=f"dropped by {by}"))
        kept = kept_lessons(sources)
    if terminal.json:
        terminal.data({"schema": SCHEMA, "lessons": [to_builtins(lesson) for _, lesson in kept]})
        return
    rows = []
    for number, (_, lesson) in enumerate(kept, 1):
        fate = Text(f"withdrawn, {first_line(lesson.withdrawn)}: " if lesson.withdrawn else "", "yellow")
        rows.append((str(number), Text(lesson.step[:SHORT], "dim"), fate.append(first_line(lesson_line(lesson)))))
    terminal.show(table(rows, "rll") or [Text("no lessons yet; keep one with `evogit lessons add REV`", "dim")])
