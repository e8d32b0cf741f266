"""`evogit tasks`, `new`, `check`: what can be evolved."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import to_builtins
from rich.text import Text

from evogit.adopt import find_task
from evogit.cli.lines.view import first_line
from evogit.cli.new_from import adopt_task, check_absent, draft, outside_option
from evogit.cli.options.shared import TASK, sandbox_option, with_repo, with_terminal
from evogit.cli.terminal import Terminal, table
from evogit.cli.text import count, escape, number
from evogit.config import Task, gallery
from evogit.core import ConfigError, RefusedError, UsageError
from evogit.history.standing import decimals
from evogit.scaffold.task_files import files
from evogit.trust import Trust

if TYPE_CHECKING:
    from evogit.review.checking import SeedEvaluation


KEYS = ("split", "status", "metrics", "cases", "stages", "reason", "cost", "judged")
"""Of an evaluation, as data."""
SLOW, PATIENCE = 10.0, 30.0
"""Seconds: of evaluations that are too long to be repeated a dozen times; that these may take."""


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
        records.append(_record(task))
        rows.append([Text(name, "bold"), *_values(task), first_sentence(task.goal)])
    if terminal.json:
        terminal.data({"schema": 1, "tasks": records})
        return
    heads = [Text(word, "dim") for word in ("task", "metric", "", "seed", "best known", "goal")]
    terminal.show(table([heads, *rows], "lllrrl"))


@click.command()
@click.argument("name")
@click.option("--at", metavar="DIR", type=click.Path(path_type=Path), help="Where; default: ./NAME.")
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

    With --from PATH it is made from a task of OpenEvolve, ShinkaEvolve, SkyDiscover, Harbor, AlphaEvolve or
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


@click.command()
@click.argument("task", type=TASK, required=False)
@click.option("--split", metavar="NAME", help="Evaluate only this one; default: all that task.toml lists.")
@sandbox_option
@with_repo
@with_terminal
def check(terminal: Terminal, repo: str | None, task: str | None, split: str | None, sandbox: str) -> None:
    """Evaluate the seed of TASK (a name or a folder) on every split, and say what is wrong.

    Default: the task of the repository that you are in.
    """
    from evogit.cli.locate_run import task_here
    from evogit.review.checking import problems
    from evogit.review.seed_numbers import sources_of

    found = find_task(task) if task is not None else task_here(repo, None)[0]
    splits = [split] if split else list(found.splits)
    found.check_split(splits[0])
    judged = asyncio.run(_evaluate(found, splits, sandbox, terminal, break_it=not split))
    shown = next((each for each in judged if each.evaluation.split == "train"), judged[0])
    sources = sources_of(found, shown.evaluation, shown.evidence)
    wrong = problems(found, judged) + [each.unread for each in sources if each.unread]
    blind = "" if wrong else next((each.blind for each in judged if each.blind), "")
    ways = [] if wrong or split else asyncio.run(_gamed(found, judged, sandbox))
    if terminal.json:
        told = {"sources": to_builtins(sources), "broken_seed": blind}
        terminal.data({**_report(found, judged, wrong), **told, "gamed": ways})
    else:
        origins = [Text(""), *(Text(escape(line), "dim") for each in sources for line in each.lines())]
        verdict = [Text(""), Text(escape(blind), "yellow")] if blind else _verdict(found, judged, wrong)
        prose = [*_spreads(found, judged), *_said(judged), *origins, *verdict]
        lines = [*prose, *_offer(found, task, wrong, ways)]
        terminal.show([*_table(found, judged), *lines])
    if wrong:
        sys.exit(1)


# --- tasks --------------------------------------------------------------------------------------------------------


def first_sentence(goal: str) -> str:
    """The first sentence of a goal, without its heading."""
    text = " ".join(line for line in goal.splitlines() if not line.startswith("#"))
    return first_line(re.split(r"(?<=[.!?])\s", " ".join(text.split()), maxsplit=1)[0])


def _values(task: Task) -> list[Text | str]:
    metric = task.primary
    places = decimals(metric.baseline, metric.best_known)
    known = [number(value, places) for value in (metric.baseline, metric.best_known)]
    return [metric.name, Text("higher" if metric.direction == "maximize" else "lower", "dim"), *known]


def _record(task: Task) -> dict[str, Any]:
    where = {"task": task.name, "folder": str(task.folder), "goal": first_sentence(task.goal)}
    return {**where, "splits": list(task.splits), "metrics": [to_builtins(metric) for metric in task.metrics]}


# --- check --------------------------------------------------------------------------------------------------------


async def _evaluate(
    task: Task, splits: list[str], sandbox: str, terminal: Terminal, *, break_it: bool
) -> list[SeedEvaluation]:
    from evogit.review.checking import judge_seed

    judged = []
    async for each in judge_seed(task, splits, sandbox, again=True, break_it=break_it):
        judged.append(each)
        if terminal.live:
            terminal.note(f"{each.evaluation.split}: {each.evaluation.status}", "dim")
    return judged


async def _gamed(task: Task, judged: list[SeedEvaluation], sandbox: str) -> list[str]:
    """What a seed that remembers or predicts gains, where scores are times; nothing where that would take long."""
    from evogit.audit.attacks import gamed

    if sum(each.evaluation.cost.wall for each in judged) > SLOW:
        return []
    return [finding.what for finding in await gamed(task, sandbox, PATIENCE)]


def _offer(task: Task, typed: str | None, wrong: list[str], ways: list[str]) -> list[Text]:
    if wrong or task.judged == "pairs":
        return []
    command = " ".join(["evogit audit", *([typed] if typed else [])])
    if ways:
        lines = [Text(f"can be gamed: {way}", "yellow") for way in ways]
        return [*lines, Text(f"{command} shows how, and what to do", "yellow")]
    return [Text.assemble(("try  ", "dim"), f"{command}, which attacks the evaluator before candidates do")]


def _table(task: Task, judged: list[SeedEvaluation]) -> list[Text]:
    heads = ["split", "status", *(metric.name for metric in task.metrics), "cases", "time", "CPU"]
    rows: list[list[Text | str]] = [[Text(head, "dim") for head in heads]]
    for each in judged:
        evaluation, cost = each.evaluation, each.evaluation.cost
        status = Text(evaluation.status, "green" if evaluation.ok else "red")
        values = [evaluation.metrics.get(metric.name) for metric in task.metrics]
        shown = [number(value, decimals(value)) for value in values]
        rows.append(
            [evaluation.split, status, *shown, str(len(evaluation.cases)), f"{cost.wall:.3f} s", f"{cost.cpu:.3f} s"]
        )
    title = Text.assemble((task.name, "bold"), f", evaluated with the sandbox {judged[0].provider}")
    title.append(f"; judged: {task.judged}" if task.command else "")
    title.append(f"; timing: {judged[0].timing}")
    return [title, Text(""), *table(rows, "ll" + "r" * (len(task.metrics) + 3))]


def _spreads(task: Task, judged: list[SeedEvaluation]) -> list[Text]:
    """How far the scores of a task that declares them noisy lie apart."""
    from evogit.review.provable import told_provable

    metric, noisy = task.primary.name, [each for each in judged if task.repeats and each.again]
    told = [f"{metric} {spread}" for each in noisy if (spread := each.told_spread(metric))]
    told += [sentence for each in noisy for sentence in told_provable(task, each)]
    return [Text(escape(sentence), "dim") for sentence in told]


def _said(judged: list[SeedEvaluation]) -> list[Text]:
    """What came from the program and the evaluator where the seed failed."""
    texts = [
        each.evidence.stderr.decode(errors="replace") + each.evidence.log for each in judged if not each.evaluation.ok
    ]
    lines = [line for text in texts[:1] for line in text.splitlines()[-20:]]
    return [Text(""), *(Text(f"  {escape(line)}", "dim") for line in lines)] if lines else []


def _verdict(task: Task, judged: list[SeedEvaluation], wrong: list[str]) -> list[Text]:
    from evogit.review.checking import advice

    if not wrong:
        files = count(len(task.seed_files()), "seed file") if task.seed else "the seed is HEAD"
        return [Text(""), Text(f"all is well: {files}, evaluator {task.evaluator_digest[:7]}", "green")]
    remedies = dict.fromkeys(advice(task, each) for each in judged if not each.evaluation.ok and not each.flaky)
    return [
        Text(""),
        *(Text(escape(line), "red") for line in wrong),
        *(Text(escape(remedy)) for remedy in remedies if remedy),
    ]


def _report(task: Task, judged: list[SeedEvaluation], wrong: list[str]) -> dict[str, Any]:
    splits = []
    for each in judged:
        found = to_builtins(each.evaluation)
        splits.append(
            {
                **{key: found[key] for key in KEYS},
                "evaluations": each.times,
                "spread": {metric.name: each.spread(metric.name) for metric in task.metrics} if each.again else {},
            }
        )
    about = {"schema": 1, "task": task.name, "provider": judged[0].provider, "evaluator": task.evaluator_digest}
    about["timing"] = judged[0].timing
    return {**about, "splits": splits, "problems": wrong}
