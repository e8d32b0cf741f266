"""A task of another system, or one that a model writes, as a task folder: `evogit new --from`, once `evogit adopt`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace
from rich.text import Text

from evogit.adopt import ForeignTask, recognise
from evogit.cli.terminal import Terminal
from evogit.cli.text import escape
from evogit.core import RefusedError, UsageError
from evogit.review.adopting import Adoption
from evogit.trust import Claim, Trust

if TYPE_CHECKING:
    from evogit.adopt.foreign_task import File
    from evogit.llm.command_account import CommandAccount

DOLLARS = 1.0
"""The default limit on the cost of a model that writes a task, in dollars."""

outside_option = click.option(
    "--outside", is_flag=True, help="Run its evaluator outside the sandbox, with your rights: read it first."
)


def check_absent(folder: Path, is_default: bool) -> None:
    """Refuse a folder that has anything in it; one that has its name by default may not be a link.

    Raises:
        RefusedError: it is not absent or empty.
    """
    linked = is_default and folder.is_symlink()  # a stranger may have committed it
    if linked or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
        raise RefusedError(f"expected {folder} to be absent or an empty folder; choose another one with --at DIR")


def adopt_task(
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


# --- a task that a model writes -----------------------------------------------------------------------------------


def draft(
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
    """Return the files that the model writes, and its account."""
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
        confirm_question(
            terminal,
            model,
            endpoint,
            sent,
            f"{ROUNDS} questions" if limit is None else f"${limit:g}, {ROUNDS} questions",
            yes=yes,
        )
        models.forget_keys()
        account = CommandAccount(limit)
        return await draft_task(shown, name, model, account), account
    finally:
        await models.close()
