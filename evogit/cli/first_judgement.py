"""What `evogit init` says about the first evaluation of a repository."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.text import Text

from evogit.cli.locate_run import typed
from evogit.cli.terminal import Terminal, table
from evogit.cli.text import decimals, escape, number
from evogit.config import Task
from evogit.repository import Repository

if TYPE_CHECKING:
    from evogit.review.checking import Judged

NEXT = {
    "run --agent editor@MODEL --evaluations 50": "let a model improve it",
    "brief": "what it will be told",
    "audit": "how its score could be had without earning it",
    "check": "evaluate HEAD again",
}
AGAIN = {"check": "evaluate HEAD again"}
"""What to type next -> what for."""
LINES = 15
"""Last lines of what a failed command printed that are shown."""


def judge(task: Task, sandbox: str, terminal: Terminal) -> Judged:
    """Evaluate HEAD on train, and say meanwhile why it takes time."""
    from evogit.review.checking import judge_seed

    async def only() -> Judged:
        return [each async for each in judge_seed(task, ["train"], sandbox)][0]

    packages = ", ".join(task.environment.packages)
    said = f"evaluating HEAD in a sandbox{f' (the first time with {packages} takes a while)' if packages else ''}"
    if not terminal.live:
        terminal.note(said, "dim")
    with terminal.err.status(Text(said)) if terminal.live else nullcontext():
        return asyncio.run(only())


def outcome(repository: Repository, task: Task, judged: Judged) -> list[Text]:
    """The seed's metrics and what to run next, or why there are none and what to change."""
    lines = _measured(task, judged) if judged.evaluation.ok else _failed(judged)
    steps = NEXT if judged.evaluation.ok else AGAIN
    rows: list[list[Text | str]] = [[f"  {typed(repository, step)}", Text(why, "dim")] for step, why in steps.items()]
    return [*lines, Text(""), *table(rows, "ll")]


def record(judged: Judged) -> dict[str, Any]:
    """The evaluation as data."""
    from evogit.review.checking import advice

    found = asdict(judged.evaluation)
    evaluation = {key: found[key] for key in ("split", "status", "metrics", "cases", "reason", "cost", "judged")}
    failed = not judged.evaluation.ok
    more = {"advice": advice(judged), "output": _output(judged)} if failed else {}
    return {"provider": judged.provider, "evaluation": evaluation, **more}


def _measured(task: Task, judged: Judged) -> Iterator[Text]:
    evaluation = judged.evaluation
    took = f" in {evaluation.cost.wall:.1f} s with {judged.provider}; judged: {evaluation.judged}"
    yield Text.assemble(("HEAD is evaluated", "bold green"), (took, "dim"))
    rows: list[list[Text | str]] = []
    for metric in task.metrics:
        value = evaluation.metrics[metric.name]
        better = "higher is better" if metric.direction == "maximize" else "lower is better"
        rank = ", ranks candidates" if metric.primary and len(task.metrics) > 1 else ""
        rows.append([f"  {metric.name}", Text(number(value, decimals(value)), "bold"), Text(better + rank, "dim")])
    yield from table(rows, "lrl")
    if evaluation.metrics[task.primary.name] == 1 and _is_a_share(task):
        yield Text(f"No candidate can have more {task.primary.name} than HEAD: choose another metric.", "yellow")


def _is_a_share(task: Task) -> bool:
    """Whether the primary metric cannot be more than 1."""
    return task.command is not None and task.command.reads[task.primary.name].how in ("exit", "junit")


def _failed(judged: Judged) -> Iterator[Text]:
    from evogit.review.checking import advice

    evaluation = judged.evaluation
    yield Text.assemble(("HEAD fails", "bold red"), f" ({evaluation.status}): {escape(evaluation.reason)}")
    yield from (Text(f"  {escape(line)}", "dim") for line in _output(judged))
    if sentence := advice(judged):
        yield Text(sentence)


def _output(judged: Judged) -> list[str]:
    """The last lines of what the command, or the evaluator, said."""
    evidence = judged.evidence
    said = evidence.log or (evidence.stdout + evidence.stderr).decode(errors="replace")
    return said.splitlines()[-LINES:]
