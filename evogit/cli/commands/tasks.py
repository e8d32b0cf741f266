"""`evogit tasks`, `new` and its old name `adopt`: the tasks that can be evolved, from EvoGit, others, or a model."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import to_builtins
from msgspec.structs import replace
from rich.text import Text

from evogit.adopt import ForeignTask, find_task, recognise
from evogit.cli.lines.view import first_line
from evogit.cli.options.shared import sandbox_option, with_terminal
from evogit.cli.renamed import UNTIL
from evogit.cli.terminal import Terminal, table
from evogit.cli.text import escape, number
from evogit.config import gallery
from evogit.core import ConfigError, RefusedError, UsageError
from evogit.history.standing import decimals
from evogit.review.adopting import Adoption
from evogit.scaffold.task_files import files
from evogit.trust import Claim, Trust

if TYPE_CHECKING:
    from evogit.adopt.foreign_task import File
    from evogit.llm.command_account import CommandAccount

DOLLARS = 1.0
"""The default limit on the cost of a model that writes a task, in dollars."""

outside_option = click.option("--outside", is_flag=True, help="Run its evaluator with your rights: read it first.")


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
@click.option("--from", "source", metavar="PATH", type=click.Path(path_type=Path), help="A task of another system.")
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
    _check_absent(folder, at is None)
    if source is not None:
        if model is None:
            _adopt_task(terminal, source, folder, sandbox, outside=outside, name=name)
        else:
            _draft(terminal, source, folder, name, model, dollars, yes=yes)
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
    _check_absent(folder, False)
    _adopt_task(terminal, path, folder, sandbox, outside=outside)


def _check_absent(folder: Path, is_default: bool) -> None:
    """Raise RefusedError if a folder is not absent or empty; one that has its name by default may not be a link."""
    linked = is_default and folder.is_symlink()  # a stranger may have committed it
    if linked or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
        raise RefusedError(f"expected {folder} to be absent or an empty folder; choose another one with --at DIR")


def _adopt_task(
    terminal: Terminal, path: Path, folder: Path, sandbox: str, *, outside: bool, name: str | None = None
) -> None:
    """Write the task of another system to a folder, with its seed evaluated."""
    from evogit.adopt.finding import unknown
    from evogit.review.adopting import adopt as adopted

    found = recognise(path)
    if found is None:
        raise unknown(path)
    found = replace(found, name=name or found.name)
    trust = Trust.of_user()
    done = asyncio.run(adopted(found, folder, sandbox, outside=outside or trust.covers(path)))
    if done.task.judged == "outside":
        trust.add_task(folder)
    if terminal.json:
        evaluation = done.judged.evaluation
        about = {"task": found.name, "system": found.system, "folder": str(folder), "judged": done.task.judged}
        score = {"status": evaluation.status, "metrics": dict(evaluation.metrics)}
        terminal.data({"schema": 1, **about, "why_inside": done.why_inside, **score})
    else:
        terminal.show(list(_told(found, done, folder)))


def _told(found: ForeignTask, done: Adoption, folder: Path) -> Iterator[Text]:
    evaluation = done.judged.evaluation
    yield Text.assemble((str(folder), "bold"), f" is a task now, made from {found.origin}")
    if evaluation.ok:
        yield Text(f"its seed has {found.metric} {evaluation.metrics[found.metric]:.6g}; judged: {done.task.judged}")
    else:
        yield Text(escape(f"its seed fails ({evaluation.status}): {evaluation.reason}"), "red")
    if done.why_inside:
        yield Text(escape(f"scores can be forged: {done.why_inside}"), "yellow")
        yield Text(
            "To change that, write an evaluator that asks the program for answers and computes the score from them "
            '(kind = "python" in task.toml; docs/tasks.md)'
        )
    else:
        yield Text(
            "The evaluator runs outside of the sandbox, with your rights, on what the program's functions return. "
            "What it does not check of that can still be false: let it compute the score from answers alone"
        )
    yield from (Text(escape(note), "yellow") for note in found.notes)
    yield Text.assemble(("try  ", "dim"), f"evogit audit {folder}, which attacks the evaluator before candidates do")


def _draft(
    terminal: Terminal, path: Path, folder: Path, name: str, model: str, dollars: float | None, *, yes: bool
) -> None:
    """Let a model write a task from the files of a path in no known format, once the user agrees to what it is sent."""
    from evogit.adopt.finding import unknown
    from evogit.adopt.foreign_task import write_files

    if not path.exists():
        raise unknown(path)
    if found := recognise(path):
        raise UsageError(f"{path} is {found.origin}, which needs no model to be read; leave --model out")
    files, account = asyncio.run(_drafted(terminal, path, name, model, dollars, yes=yes))
    write_files(folder, files)
    if terminal.json:
        terminal.data({"schema": 1, "task": name, "folder": str(folder), "files": sorted(files), "model": model})
        return
    terminal.note(f"{model}: {account}")
    terminal.note(f"{folder}/ is a task that {model} wrote: its evaluator runs in the sandbox (judged: inside). Read")
    terminal.note(f"it, and see whether it is right:\n\n    evogit check {folder}\n    evogit audit {folder}")


async def _drafted(
    terminal: Terminal, path: Path, name: str, model_name: str, dollars: float | None, *, yes: bool
) -> tuple[dict[str, File], CommandAccount]:
    from evogit.cli.consent import SentFiles, confirm_question
    from evogit.config.user_settings import load_user_settings
    from evogit.llm.command_account import CommandAccount
    from evogit.llm.registry import open_models
    from evogit.review.drafting import ROUNDS, draft_task, shown_files

    models = open_models(load_user_settings(os.environ))
    try:
        model, endpoint = models.get(model_name), models.endpoint(model_name)
        if endpoint and not Trust.of_user().covers(path):
            place = str((path if path.is_dir() else path.parent).resolve())
            effect = f"its texts and files in {place} are sent to {model_name}, which may cost money"
            Trust.of_user().check([Claim("sent", place, effect)])
        free = model.price is not None and model.price.free
        limit = dollars if dollars is not None or free or not endpoint else DOLLARS
        if limit is not None and model.price is None:
            raise UsageError(f"expected a known price of {model_name} to keep --dollars; say it in your settings")
        shown = shown_files(path)
        sizes = shown.sizes
        sent = SentFiles(files=sizes, kept=len(shown.secret), brief=sum(sizes.values()) // 4, secret=[*shown.secret])
        most = f"{ROUNDS} questions" if limit is None else f"${limit:g}, {ROUNDS} questions"
        confirm_question(terminal, model, endpoint, sent, most, yes=yes)
        models.forget_keys()
        account = CommandAccount(limit)
        return await draft_task(shown, name, model, account), account
    finally:
        await models.close()
