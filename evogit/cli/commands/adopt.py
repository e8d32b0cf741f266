"""`evogit adopt`: a task of another system becomes a task folder of your own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import click
from rich.text import Text

from evogit.adopt import ForeignTask, recognise
from evogit.adopt.finding import unknown
from evogit.cli.options.shared import sandbox_option, with_terminal
from evogit.cli.terminal import Terminal
from evogit.cli.text import escape
from evogit.core import RefusedError
from evogit.review.adopting import Adoption
from evogit.trust import Trust


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option("--outside", is_flag=True, help="Run its evaluator outside the sandbox, with your rights: read it first.")
@sandbox_option
@with_terminal
def adopt(terminal: Terminal, path: Path, folder: Path, sandbox: str, outside: bool) -> None:
    """Write the task of another system at PATH to DIR as one of EvoGit's, to be changed into your own.

    By default its evaluator runs in the sandbox, where a candidate can forge its score. With --outside it runs on this
    machine, with a stand-in for the program, if the seed has the same score there: no candidate can forge that.
    """
    from evogit.review.adopting import adopt as adopted

    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RefusedError(f"expected {folder} to be absent or an empty folder; choose another one")
    found = recognise(path)
    if found is None:
        raise unknown(path)
    trust = Trust.of_user()
    outside = outside or trust.covers(path)
    done = asyncio.run(adopted(found, folder, sandbox, outside=outside))
    if done.task.judged == "outside":
        trust.add_task(folder)
    if terminal.json:
        terminal.data({"schema": 1, **_record(found, done, folder)})
    else:
        terminal.show(list(_told(found, done, folder)))


def _record(found: ForeignTask, done: Adoption, folder: Path) -> dict[str, object]:
    evaluation = done.judged.evaluation
    about = {"task": found.name, "system": found.system, "folder": str(folder), "judged": done.task.judged}
    return {**about, "why_inside": done.why_inside, "status": evaluation.status, "metrics": dict(evaluation.metrics)}


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
