"""`evogit tasks`, `new` and its old name `adopt`: the tasks that can be evolved."""

from __future__ import annotations

import re
from pathlib import Path

import click
from msgspec import to_builtins
from rich.text import Text

from evogit.adopt import find_task
from evogit.cli.lines.view import first_line
from evogit.cli.new_from import adopt_task, check_absent, draft, outside_option
from evogit.cli.options.shared import sandbox_option, with_terminal
from evogit.cli.renamed import UNTIL
from evogit.cli.terminal import Terminal, table
from evogit.cli.text import number
from evogit.config import gallery
from evogit.core import ConfigError, RefusedError, UsageError
from evogit.history.standing import decimals
from evogit.scaffold.task_files import files
from evogit.trust import Trust


@click.command()
@with_terminal
def tasks(terminal: Terminal) -> None:
    """List the tasks that come along, with the seed's value and the best known one."""
    rows: list[list[Text | str]] = []
    records = []
    for name in gallery():
        try:
            task = find_task(name)
        except ConfigError as error:
            terminal.note(str(error), "yellow")
            continue
        metric, goal = task.primary, first_sentence(task.goal)
        about = {"task": task.name, "folder": str(task.folder), "goal": goal, "splits": list(task.splits)}
        records.append({**about, "metrics": [to_builtins(each) for each in task.metrics]})
        places = decimals(metric.baseline, metric.best_known)
        known = [number(value, places) for value in (metric.baseline, metric.best_known)]
        direction = Text("higher" if metric.direction == "maximize" else "lower", "dim")
        rows.append([Text(name, "bold"), metric.name, direction, *known, goal])
    if terminal.json:
        terminal.data({"schema": 1, "tasks": records})
        return
    terminal.show(table(rows, "lllrrl", ("task", "metric", "", "seed", "best known", "goal")))


@click.command()
@click.argument("name")
@click.option("--at", metavar="DIR", type=click.Path(path_type=Path), help="Folder of the task; default: ./NAME.")
@click.option(
    "--from", "source", metavar="PATH", type=click.Path(path_type=Path), help="Make it from a task of another system."
)
@outside_option
@click.option("--model", metavar="MODEL", help="Let this model write the task, if PATH is in no known format.")
@click.option("--dollars", type=click.FloatRange(min=0), metavar="D", help="What the model may cost; default: 1.")
@click.option("--yes", is_flag=True, help="Agree to what the model costs and is sent.")
@sandbox_option
@with_terminal
def new(
    terminal: Terminal,
    name: str,
    at: Path | None,
    source: Path | None,
    outside: bool,
    model: str | None,
    dollars: float | None,
    yes: bool,
    sandbox: str,
) -> None:
    """Write a small task called NAME that works at once, to be changed into your own.

    With --from PATH it is made from a task of OpenEvolve, ShinkaEvolve, SkyDiscover, Harbor or
    autoresearch. Its evaluator runs in the sandbox, where a candidate can forge its score; with --outside it runs on
    this machine, with a stand-in for the program, if the seed has the same score there. With --model, a model that is
    shown the files of PATH writes the task; `evogit check` then shows whether it is right.
    """
    folder = at or Path(name)
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,59}", name):
        raise UsageError(f"expected a name of small letters, digits, `-` and `_`, got {name!r}")
    if name in gallery():
        raise RefusedError(f"{name} is a shipped task, which that name would mean; choose another name")
    if source is None and (outside or model or dollars is not None):
        raise UsageError("expected --from PATH with --outside, --model or --dollars")
    check_absent(folder, at is None)
    if source is not None and model is None:
        adopt_task(terminal, source, folder, sandbox, outside=outside, name=name)
        return
    if source is not None and model is not None:
        draft(terminal, source, folder, name, model, dollars, yes=yes)
        return
    for path, content in files(name, str(folder)).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content, encoding="utf-8")
    Trust.of_user().add_task(folder)
    if terminal.json:
        terminal.data({"schema": 1, "task": name, "folder": str(folder)})
    else:
        terminal.note(f"{folder}/ is a task: change task.toml, goal.md, seed/ and evaluator/, then\n")
        terminal.note(f"    evogit check {folder}\n    evogit audit {folder}\n    evogit run {folder} --minutes 1")
        terminal.note("\nTo improve a Git repository of yours instead: evogit init", "dim")


def first_sentence(goal: str) -> str:
    """The first sentence of a goal, without its heading."""
    text = " ".join(line for line in goal.splitlines() if not line.startswith("#"))
    return first_line(re.split(r"(?<=[.!?])\s", " ".join(text.split()), maxsplit=1)[0])


@click.command(hidden=True)
@click.argument("path", type=click.Path(path_type=Path))
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@outside_option
@sandbox_option
@with_terminal
def adopt(terminal: Terminal, path: Path, folder: Path, sandbox: str, outside: bool) -> None:
    """Write the task of another system at PATH to DIR: the old name of `evogit new NAME --from PATH`."""
    option = " --outside" if outside else ""
    terminal.note(f"`evogit adopt` is now `evogit new {folder.name} --from {path}{option}`; {UNTIL}", "yellow")
    check_absent(folder, False)
    adopt_task(terminal, path, folder, sandbox, outside=outside)
