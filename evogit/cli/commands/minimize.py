"""`evogit minimize`, `ablate`: the steps of a candidate that earn its score, and its score without each of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
from rich.text import Text

from evogit.cli.lines.compare import patch_lines
from evogit.cli.lines.steps import step_lines, step_record
from evogit.cli.lines.summary import next_steps
from evogit.cli.lines.view import SHORT, View
from evogit.cli.locate_run import Place
from evogit.cli.options.shared import REVISION, with_judged_run, with_terminal
from evogit.cli.terminal import Terminal
from evogit.cli.text import clock, count, escape, number
from evogit.config import Task
from evogit.core import RefusedError
from evogit.history.standing import places
from evogit.review import SCHEMA, candidate_record, resolve
from evogit.review.minimizing import Minimized, Trial, plan_ablation
from evogit.review.minimizing import ablate as measure
from evogit.review.minimizing import minimize as search


@click.command()
@click.argument("rev", type=REVISION)
@click.option("--evaluations", type=click.IntRange(1), default=100, metavar="N", help="New evaluations at most (100).")
@with_judged_run
@with_terminal
def minimize(place: Place, task: Task, terminal: Terminal, rev: str, evaluations: int, sandbox: str) -> None:
    """Leave out each step of REV that proves nothing, and show the gain of the others, with its interval.

    Each step is left out alone and the rest measured beside the whole; it stays if it is better beyond noise. Every
    trial is a candidate of the run: the same command goes on where it was cut off. It may work beside a running engine.
    The smallest one can be landed like any other.
    """
    candidate = resolve(place.history, rev)
    evaluated = 0

    def tell(trial: Trial) -> None:
        nonlocal evaluated
        if trial.known:
            return
        evaluated += 1
        score = Text("fail", "red") if trial.value is None else Text(number(trial.value, places(place.history)))
        head = (f"{evaluated:>4} of {evaluations}  ", "dim")
        terminal.note(Text.assemble(head, score, f"  {escape(trial.title)}"), fit="ellipsis")

    done = terminal.run(
        search(place.about(task), candidate, tell, provider=sandbox, evaluations=evaluations), "measuring steps"
    )
    patch = place.repository.diff(place.history.seed or "", done.smallest)
    if terminal.json:
        terminal.data(_record(place, done, patch))
        return
    view = View.of(place.history, terminal)
    short = done.smallest[:SHORT]
    steps = [] if done.complete else [f"minimize {done.candidate[:SHORT]}"]
    if done.left:
        steps.append(f"export {short} DIR" if place.repository.created else f"land {short} --steps")
    ways_on = next_steps(place, *steps, f"show {short}")
    terminal.show([*_outcome(view, done), *patch_lines(patch), Text(""), *ways_on])


@click.command()
@click.argument("rev", type=REVISION, default="best")
@click.option("--evaluations", type=click.IntRange(1), default=100, metavar="N", help="Evaluations at most (100).")
@with_judged_run
@with_terminal
def ablate(place: Place, task: Task, terminal: Terminal, rev: str, evaluations: int, sandbox: str) -> None:
    """Show REV (default: the best) without each step of its lineage, on the run's split and on the holdout.

    Each first-parent step since the seed is taken out alone, or with the later steps that build on it, and the whole
    compared with the rest: two evaluations for a step, more where scores are noisy. Nothing is recorded, and the search
    sees none of it.
    """
    context, history = place.about(task), place.history
    plan = plan_ablation(context, resolve(history, rev))
    cost = f"{count(plan.evaluations, 'evaluation')}, about {clock(plan.seconds)}"
    terminal.note(f"{count(len(plan.steps), 'step')} on {' and '.join(plan.splits)}: {cost}")
    if plan.evaluations > evaluations:
        more = f"allow them with --evaluations {plan.evaluations}, or ablate an older candidate"
        raise RefusedError(f"expected at most {evaluations} evaluations, but it takes {plan.evaluations}; {more}")
    tables = terminal.run(measure(context, plan, sandbox), "measuring without each step")
    if terminal.json:
        about = {"candidate": candidate_record(history, plan.candidate), "evaluations": plan.evaluations}
        splits = {split: list(map(step_record, steps)) for split, steps in tables.items()}
        terminal.data({"schema": SCHEMA, "run": history.run, **about, "seconds": plan.seconds, "splits": splits})
        return
    view = View.of(history, terminal)
    told = [line for split, steps in tables.items() for line in (Text(split, "bold"), *step_lines(view, steps))]
    terminal.show([view.line(plan.candidate, score=True), *told])


def _outcome(view: View, done: Minimized) -> Iterator[Text]:
    for commit, size in ((done.candidate, len(done.steps)), (done.smallest, done.left)):
        yield Text.assemble(f"{count(size, 'step'):>10}  ", view.line(view.history.phylogeny[commit], score=True))
        if done.smallest == done.candidate:
            yield Text("nothing of it can be left out" if done.complete else "nothing was left out so far", "dim")
            break
    if not done.left:
        yield Text("the seed is as good: nothing of the change is needed", "yellow")
    if not done.complete:
        yield Text(f"stopped after {count(done.judged, 'evaluation')}: perhaps more can be left out", "yellow")
    yield from (Text(""), *step_lines(view, done.steps), Text(""))


def _record(place: Place, done: Minimized, patch: str) -> dict[str, Any]:
    """`gain` is in the unit of the primary metric, positive is better; None where the rest fails or is not known."""
    history = place.history
    return {
        "schema": SCHEMA,
        "run": history.run,
        "candidate": candidate_record(history, history.phylogeny[done.candidate]),
        "smallest": candidate_record(history, history.phylogeny[done.smallest]),
        "evaluations": done.judged,
        "complete": done.complete,
        "steps": list(map(step_record, done.steps)),
        "patch": patch,
    }
