"""`evogit rescore`: go on with a run whose task or evaluator changed, without mixing scores."""

from __future__ import annotations

import time
from typing import Any

import click
from rich.text import Text

from evogit.cli.confirming import asks, confirm
from evogit.cli.lines.events import event_line
from evogit.cli.lines.summary import next_steps
from evogit.cli.lines.view import View, first_line
from evogit.cli.locate_run import Place, run_of
from evogit.cli.options.shared import TASK, jobs_option, name_option, sandbox_option, with_repo, with_terminal
from evogit.cli.terminal import Terminal, table
from evogit.cli.text import clock, count, number
from evogit.core import Evaluation, Metric
from evogit.events import Entry
from evogit.history import History
from evogit.history.context import StoredRun
from evogit.history.standing import decimals
from evogit.review import SCHEMA
from evogit.review.rescoring import RescorePlan, plan
from evogit.review.rescoring import rescore as judge_again


@click.command()
@click.argument("task", type=TASK, required=False)
@jobs_option
@sandbox_option
@asks
@name_option
@with_repo
@with_terminal
def rescore(
    terminal: Terminal,
    repo: str | None,
    name: str | None,
    task: str | None,
    jobs: int,
    sandbox: str,
    yes: bool,
    dry_run: bool,
) -> None:
    """Evaluate again, after the task or its evaluator changed: the seed, the agents' individuals, the record holders.

    Earlier evaluations stay on record, but no longer rank candidates. TASK as for `evogit run`. The same command
    resumes what was cut off.
    """
    found, place = run_of(task, repo, name)
    before = (place.history.metric, place.history.best)
    todo = plan(place.about(found))
    if todo is None:
        terminal.note("nothing changed that candidates are evaluated by, so nothing is evaluated again")
    else:
        for line in _plan(todo, jobs):
            terminal.note(line)
        if dry_run:
            terminal.note("nothing was changed", "dim")
        else:
            if not yes:
                confirm(terminal)
            place = Place.of(StoredRun.open(place.repository, place.history.run))

            def tell(entry: Entry) -> None:
                view = View(place.history, terminal.err_glyphs, time.time())
                terminal.note(event_line(view, entry.event), fit="ellipsis")

            place.journal.subscribe(tell)
            terminal.run(judge_again(place.about(found), provider=sandbox, jobs=jobs), "evaluating again")
    if terminal.json:
        terminal.data(_record(place.history, todo, before))
    elif todo and not dry_run:
        terminal.show(_outcome(place, terminal, todo, before))


HEADS = ("", "before", "now", "")
Before = tuple[Metric, str | None]
"""The primary metric and the best one until now."""


def _plan(todo: RescorePlan, jobs: int) -> list[Text]:
    changed = ", ".join(todo.changed) or "this old journal does not say what"
    took = f", about {clock(todo.seconds / jobs)}" if todo.seconds >= jobs else ""
    who = count(len(todo.candidates), "candidate")
    if todo.begun:
        return [Text.assemble(("go on    ", "bold"), f"{who} left to be evaluated again{took}")]
    return [
        Text.assemble(("changed  ", "bold"), first_line(changed)),
        Text.assemble(("rescore  ", "bold"), f"{who}{took}: the seed, individuals, record holders, promoted"),
    ]


def _outcome(place: Place, terminal: Terminal, todo: RescorePlan, before: Before) -> list[Text]:
    history, view, (metric, best) = place.history, View.of(place.history, terminal), before
    evaluations = map(history.former, todo.candidates)
    former = [each.metrics.get(metric.name) if each and each.ok else None for each in evaluations]
    places = max(view.places, decimals(*former)) if metric.name == history.metric.name else decimals(*former)
    rows: list[list[Text | str]] = []
    for commit, old in zip(todo.candidates, former, strict=True):
        name = Text.assemble(view.glyph(commit), " ", view.name(commit))
        rows.append(
            [
                name,
                Text(number(old, places), "dim"),
                view.score(commit),
                Text.assemble(*view.title(history.phylogeny[commit])),
            ]
        )
    renamed = "" if metric.name == history.metric.name else f" (before: {metric.name})"
    lines = [
        Text.assemble(f"{history.metric.name}{renamed}", style="bold"),
        *table(rows, "lrrl", ("", "before", "now", "")),
        Text(""),
    ]
    if history.best and history.best != best:
        lines.append(Text("the best is now ").append_text(view.line(history.phylogeny[history.best], score=True)))
    return [*lines, *next_steps(place, "status", "run" if history.pending else "graph")]


def _record(history: History, todo: RescorePlan | None, before: Before) -> dict[str, Any]:
    """`metrics` and `status` are None where nothing was evaluated again, as in a dry run."""
    candidates = []
    for commit in todo.candidates if todo else ():
        former, now = history.former(commit) or history.evaluation(commit), history.evaluation(commit)
        now = now if history.former(commit) else None
        candidates.append({"commit": commit, "former": _said(former), "now": _said(now)})
    best = {"from": before[1], "to": history.best}
    changed = list(todo.changed) if todo else []
    return {"schema": SCHEMA, "run": history.run, "changed": changed, "candidates": candidates, "best": best}


def _said(evaluation: Evaluation | None) -> dict[str, Any] | None:
    return {"status": evaluation.status, "metrics": dict(evaluation.metrics)} if evaluation else None
