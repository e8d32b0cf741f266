"""`evogit eval`: evaluate work that is not committed, as a candidate would be."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from msgspec import to_builtins
from rich.text import Text

from evogit.cli.lines.view import STYLES, first_line
from evogit.cli.options.shared import TASK, name_option, sandbox_option, with_repo, with_terminal
from evogit.cli.task_context import seed_tree, task_context
from evogit.cli.terminal import Terminal, table
from evogit.cli.text import count, escape, number
from evogit.config import Task
from evogit.core import Evaluation, Evidence, Metric, NotFoundError, RefusedError, UsageError
from evogit.engine.comparability import changed_judge, judged_anew
from evogit.engine.run_key import inputs_of
from evogit.evaluation.inputs import Inputs
from evogit.history import History
from evogit.history.standing import Comparison, decimals
from evogit.review import SCHEMA
from evogit.review.uncommitted import Work, judge_work, read_work

NAMED = 8
"""Most paths that are named in a line."""

LAST = 20
"""Lines of a failed program's output that are shown."""


@click.command()
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(path_type=Path, file_okay=False))
@click.option("--split", metavar="NAME", help="What to evaluate it on; default: the run's split, else train.")
@click.option(
    "--any", "anyway", is_flag=True, help="Leave out changes that no candidate may make, instead of refusing."
)
@click.option("--task", type=TASK, help="The task (a name or a folder) where it cannot be found here.")
@sandbox_option
@name_option
@with_repo
@with_terminal
def eval(
    terminal: Terminal,
    repo: str | None,
    name: str | None,
    folder: Path | None,
    split: str | None,
    anyway: bool,
    task: str | None,
    sandbox: str,
) -> None:
    """Evaluate DIR with all that is not committed there; default: the checkout that you are in.

    It is evaluated as a candidate would be, in the sandbox, on the editable paths that Git would track. Nothing is
    recorded. Exits with 1 when it is not valid.
    """
    found, repository, history = task_context(task, repo, name)
    split = split or (history.split if history.started else "train")
    found.check_split(split)
    if folder is None and repository.bare:
        raise UsageError("a bare repository has no checkout; name the folder: evogit eval DIR")
    seed, folder = seed_tree(found, repository, history), folder or repository.path
    if not folder.is_dir():
        raise NotFoundError(f"expected a folder to evaluate, got {folder}, which is not there")
    work = asyncio.run(read_work(repository, found, seed, folder))
    _tell(terminal, work, anyway)
    drawing = inputs_of(repository, history) if history.started else Inputs.own()
    judging = judge_work(repository, found, seed, work, split=split, provider=sandbox, drawing=drawing)
    judged = asyncio.run(judging)
    if terminal.json:
        terminal.data(_record(found, folder, work, history, *judged))
    else:
        terminal.show(_shown(found, history, *judged))
    if not judged[0].ok:
        sys.exit(1)


# --- before -------------------------------------------------------------------------------------------------------


def _tell(terminal: Terminal, work: Work, anyway: bool) -> None:
    """What is evaluated and what is not.

    Raises:
        RefusedError: protected paths differ, and that was not allowed.
    """
    if work.protected and not anyway:
        raise RefusedError(
            f"no candidate may change {_names(work.protected)}; put them back as the seed has them, or leave these "
            "changes out with --any"
        )
    terminal.note(f"{count(len(work.changed), 'file')} changed: {_names(work.changed)}" if work.changed else UNCHANGED)
    for paths, why in ((work.protected, "are protected"), (work.left_out, "are no candidate's to add")):
        if paths:
            terminal.note(f"left out, as they {why}: {_names(paths)}", "yellow")


UNCHANGED = "nothing that a candidate may change differs from the seed"


def _names(paths: tuple[str, ...]) -> str:
    more = f" and {count(len(paths) - NAMED, 'more path')}" if paths[NAMED:] else ""
    return ", ".join(escape(path) for path in paths[:NAMED]) + more


# --- after --------------------------------------------------------------------------------------------------------


def _shown(task: Task, history: History, evaluation: Evaluation, evidence: Evidence) -> Iterator[Text]:
    cost = evaluation.cost
    about = f" on {evaluation.split}, {cost.wall:.2f} s, {cost.cpu:.2f} s CPU"
    inside = "  judged: inside" if evaluation.judged == "inside" else ""
    yield Text.assemble((evaluation.status, "green" if evaluation.ok else "red"), about, inside)
    yield from (Text(escape(line), "red") for line in evaluation.reason.splitlines())
    yield Text("")
    changed = changed_judge(history, task)
    if changed is not None:
        yield Text(first_line(judged_anew(changed)), "yellow")
    yield from _against(task, history, evaluation)
    for name in dict.fromkeys([*evaluation.cases, *evidence.feedback]):
        values = ", ".join(f"{metric} {value:.6g}" for metric, value in evaluation.cases.get(name, {}).items())
        yield Text(f"  {escape(name)}: {values}".rstrip(": "), "dim")
        yield from (Text(f"    {escape(line)}") for line in evidence.feedback.get(name, "").splitlines())
    if not evaluation.ok:
        said = evidence.stderr.decode(errors="replace") + evidence.log
        yield from (Text(f"  {escape(line)}", "dim") for line in said.splitlines()[-LAST:])


def _against(task: Task, history: History, evaluation: Evaluation) -> list[Text]:
    """A line per metric: the value, and beside it those of the seed and of the best."""
    if task.pairwise:
        return [Text("pairs decide which is better: add it to a run, then `evogit judge`", "dim")]
    others = _others(task, history, evaluation.split)
    heads = ["", "this", *(cell for name in others for cell in (name, "gain"))]
    rows = [[Text(head, "dim") for head in heads]]
    for metric in sorted(task.metrics, key=lambda metric: not metric.primary):
        noisy = bool(others and task.repeats)
        noise = history.scores.noise(evaluation.split, metric.name).margin(1, 1) if noisy else 0.0
        values = [each.get(metric.name) for each in others.values()]
        rows.append(_row(metric, evaluation.metrics.get(metric.name), values, noise))
    return table(rows, "lr" + "rr" * len(others)) if evaluation.ok else []


def _others(task: Task, history: History, split: str) -> dict[str, dict[str, float]]:
    """Metrics of the seed and of the best, as far as they were evaluated by this task."""
    known = dict[str, dict[str, float]]()
    if changed_judge(history, task) is not None:
        return known
    for name, commit in (("seed", history.seed), ("best", history.best)):
        found = history.evaluation(commit, split) if commit else None
        if found and found.ok:
            known[name] = dict(found.metrics)
    return known


def _row(metric: Metric, value: float | None, others: list[float | None], noise: float) -> list[Text]:
    """A line of values, each of the others with the gain over it; `noise`: differences up to that are noise."""
    places = decimals(value, *others)
    cells = [Text(metric.name, "bold" if metric.primary else ""), Text(number(value, places), "bold")]
    for other in others:
        cells.append(Text(number(other, places)))
        compared = None if value is None or other is None else Comparison.of(metric, value, other, noise)
        cells.append(Text(compared.text(places), STYLES[compared.verdict]) if compared else Text(""))
    return cells


def _record(
    task: Task, folder: Path, work: Work, history: History, evaluation: Evaluation, evidence: Evidence
) -> dict[str, Any]:
    judged = json.loads(json.dumps(to_builtins(evaluation)))
    kept = ("status", "metrics", "cases", "stages", "reason", "split", "cost", "judged")
    paths = {"changed": list(work.changed), "protected": list(work.protected), "left_out": list(work.left_out)}
    others = {"seed": None, "best": None, **_others(task, history, evaluation.split)}
    texts = {"feedback": dict(evidence.feedback), "stderr": evidence.stderr.decode(errors="backslashreplace")}
    where: dict[str, Any] = {"schema": SCHEMA, "task": task.name, "folder": str(folder), "tree": work.tree}
    where["task_changed"] = changed_judge(history, task)
    return {**where, **paths, **{key: judged[key] for key in kept}, **texts, **others}
