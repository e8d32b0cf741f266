"""What `evogit init` says about the first evaluation of a repository."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins
from rich.text import Text

from evogit.cli.locate_run import typed
from evogit.cli.terminal import Terminal, table
from evogit.cli.text import escape, number
from evogit.config import Task
from evogit.config.values import REPEATS, SLOW_REPEATS
from evogit.history.standing import decimals
from evogit.repository import Repository

if TYPE_CHECKING:
    from evogit.review.checking import SeedEvaluation

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


def judge(task: Task, sandbox: str, terminal: Terminal) -> SeedEvaluation:
    """Evaluate HEAD on train, several times, and say meanwhile why it takes time."""
    from evogit.review.checking import judge_seed

    async def only() -> SeedEvaluation:
        return [each async for each in judge_seed(task, ["train"], sandbox, again=True)][0]

    packages = ", ".join(task.environment.packages)
    why = f"; the first time with {packages} takes a while" if packages else ""
    said = f"evaluating HEAD in a sandbox several times, to see whether its score repeats{why}"
    if not terminal.live:
        terminal.note(said, "dim")
    with terminal.err.status(Text(said)) if terminal.live else nullcontext():
        return asyncio.run(only())


def steady(judged: SeedEvaluation) -> bool:
    """Whether HEAD was valid each time."""
    return not judged.failed


def is_noisy(task: Task, judged: SeedEvaluation) -> bool:
    """Whether the score that ranks candidates came out differently, though HEAD was valid each time."""
    return steady(judged) and judged.spread(task.primary.name) is not None


def repeats_for(task: Task, judged: SeedEvaluation) -> int:
    """How often what seems best is to be evaluated again: never if scores repeat, less often if that takes long."""
    noisy = task.repeats or is_noisy(task, judged)
    return (SLOW_REPEATS if judged.slow else REPEATS) if noisy else 0


def outcome(repository: Repository, task: Task, judged: SeedEvaluation) -> list[Text]:
    """The seed's metrics and what to run next, or why there are none and what to change."""
    lines = _measured(task, judged) if judged.evaluation.ok else _failed(task, judged)
    steps = NEXT if steady(judged) else AGAIN
    rows: list[list[Text | str]] = [[f"  {typed(repository, step)}", Text(why, "dim")] for step, why in steps.items()]
    return [*lines, Text(""), *table(rows, "ll")]


def record(task: Task, judged: SeedEvaluation) -> dict[str, Any]:
    """The evaluation as data, and what came of repeating it."""
    from evogit.review.checking import advice, flaky
    from evogit.review.provable import provable

    found = to_builtins(judged.evaluation)
    evaluation = {key: found[key] for key in ("split", "status", "metrics", "cases", "reason", "cost", "judged")}
    about = {"provider": judged.provider, "evaluation": evaluation, "evaluations": judged.times}
    if judged.failed:
        return {
            **about,
            "advice": flaky(task, judged) if judged.flaky else advice(task, judged),
            "output": _output(judged),
        }
    spread = {metric.name: judged.spread(metric.name) for metric in task.metrics}
    return {**about, "spread": spread, "repeats": task.repeats, "provable": to_builtins(provable(task, judged))}


def _measured(task: Task, judged: SeedEvaluation) -> Iterator[Text]:
    from evogit.review.seed_numbers import sources_of

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
    sources = sources_of(task, evaluation, judged.evidence)
    yield from (Text(f"  {escape(line)}", "dim") for each in sources for line in each.lines())
    yield from (Text(escape(each.unread), "yellow") for each in sources if each.unread)
    yield from _repeated(task, judged)
    how = task.command.reads[task.primary.name].how if task.command else ""
    if evaluation.metrics[task.primary.name] == 1 and how in ("exit", "junit"):  # shares
        yield Text(f"No candidate can have more {task.primary.name} than HEAD: choose another metric.", "yellow")


def _repeated(task: Task, judged: SeedEvaluation) -> Iterator[Text]:
    """What came of evaluating HEAD again."""
    from evogit.review.checking import flaky
    from evogit.review.provable import told_provable

    yield from (Text(f"  {escape(line)}", "dim") for log in judged.logs for line in log.splitlines()[-LINES:])
    if judged.flaky:
        yield Text(escape(flaky(task, judged)), "red")
        return
    for metric in task.metrics:
        if said := judged.told_spread(metric.name):
            yield Text(f"{metric.name} {said}", "yellow")
    if not is_noisy(task, judged):
        again = f", with repeats = {task.repeats}" if task.repeats else ", so repeats = 0"
        yield Text(f"{task.primary.name} was the same in {judged.times} evaluations{again}", "dim")
    elif task.repeats:
        yield Text(
            f"repeats = {task.repeats}: what seems best is evaluated {task.repeats} more times before it is believed",
            "dim",
        )
    else:
        yield Text("With repeats = 0 such noise is taken for progress: set repeats in [evaluator]", "yellow")
    yield from (Text(escape(said), "dim") for said in told_provable(task, judged))


def _failed(task: Task, judged: SeedEvaluation) -> Iterator[Text]:
    from evogit.review.checking import advice, flaky

    evaluation = judged.evaluation
    yield Text.assemble(("HEAD fails", "bold red"), f" ({evaluation.status}): {escape(evaluation.reason)}")
    yield from (Text(f"  {escape(line)}", "dim") for line in _output(judged))
    if sentence := flaky(task, judged) if judged.flaky else advice(task, judged):
        yield Text(escape(sentence))


def _output(judged: SeedEvaluation) -> list[str]:
    """The last lines of what the command, or the evaluator, said."""
    evidence = judged.evidence
    said = evidence.log or (evidence.stdout + evidence.stderr).decode(errors="replace")
    return said.splitlines()[-LINES:]
