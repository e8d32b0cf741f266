"""`evogit minimize`: the steps of a candidate that earn its score, as a change that can be reviewed."""

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
from evogit.cli.text import count, escape, number
from evogit.config import Task
from evogit.history.standing import places
from evogit.review import SCHEMA, candidate_record, resolve
from evogit.review.minimizing import Minimized, Trial
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
