"""`evogit verify`: evaluates candidates again as they were evaluated, and says whether what is on record holds."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from textwrap import wrap
from typing import Any

import click
from rich.text import Text

from evogit.cli.lines.view import View, first_line
from evogit.cli.locate_run import Place
from evogit.cli.options.shared import REVISION, with_judged_run, with_terminal
from evogit.cli.terminal import Terminal, table
from evogit.cli.text import count, escape
from evogit.config import Task
from evogit.engine.comparability import changed_judge, judged_anew
from evogit.history.standing import compare, decimals, value_of
from evogit.review import SCHEMA, resolve
from evogit.review.json_records import finite
from evogit.review.verifying import AGAIN, RECORDED, Verification, check_verifiable
from evogit.review.verifying import verify as judge_again


@click.command()
@click.argument("revs", type=REVISION, nargs=-1, metavar="[REV]...")
@with_judged_run
@with_terminal
def verify(place: Place, task: Task, terminal: Terminal, revs: tuple[str, ...], sandbox: str) -> None:
    """Evaluate REV (default: the best) again, on the run's split and the holdout, and compare with what is on record.

    A claim holds if the values repeat; for a noisy task, within noise. On the holdout any candidate can be evaluated,
    whether it is on record there or not. Nothing is recorded. Exit code 1: a claim
    does not hold, or a busy machine left a candidate too little CPU to tell.
    """
    history = place.history
    candidates = list({(each := resolve(history, rev)).commit: each for rev in revs or ("best",)}.values())
    check_verifiable(history, candidates)
    changed = changed_judge(history, task)
    if changed is not None:
        terminal.note(first_line(judged_anew(changed)), "yellow")
    view, done = View.of(history, terminal), list[Verification]()

    async def judge() -> None:
        async for each in judge_again(place.repository, history, task, candidates, sandbox):
            done.append(each)
            if not terminal.json:
                terminal.show(_shown(view, each))

    terminal.run(judge(), "evaluating again")
    holds = all(each.holds for each in done)
    if terminal.json:
        records = [_record(each) for each in done]
        terminal.data({"schema": SCHEMA, "run": history.run, "holds": holds, "verified": records})
    if not holds:
        sys.exit(1)


def _shown(view: View, found: Verification) -> Iterator[Text]:
    verdict = Text("holds", "green") if found.holds else Text("does not hold", "bold red")
    if found.recorded is None:
        verdict = Text("nothing on record", "dim")
    if found.under_load:
        verdict = Text("not measured; try again when the machine is not busy", "yellow")
    yield Text.assemble(view.name(found.candidate.commit), f"  on {found.split}: ", verdict)
    times = [count(found.times(which), "time") for which in (RECORDED, AGAIN)]
    heads = ["", f"recorded, {times[0]}", f"now, {times[1]}", "gain"]
    heads, rows = heads if found.recorded else [heads[0], heads[2]], []
    for metric in view.history.started.metrics if found.again.ok and view.history.started else ():
        values = [value_of(found.scores, which, None, metric) for which in (RECORDED, AGAIN)]
        margins = [found.scores.margin(which, None, metric.name) for which in (RECORDED, AGAIN)]
        places, compared = decimals(*values, margins=margins), compare(found.scores, AGAIN, RECORDED, None, metric)
        told = [view.measured(*each, places) for each in zip(values, margins, strict=True)]
        cells = [*told, compared.text(places) if compared else ""] if found.recorded else told[1:]
        rows.append([Text(first_line(metric.name)), *map(Text, cells)])
    if rows:
        yield from (Text("  ").append_text(line) for line in table(rows, "lrrr"[: len(heads)], heads))
    elif found.holds:
        yield Text(f"  {found.recorded.status if found.recorded else 'not evaluated'} then, {found.again.status} now")
    if found.scores.paired and found.again.ok and (gain := compare(found.scores, AGAIN, view.history.seed or "")):
        share = f" ({gain.relative})" if gain.relative else ""
        yield Text(f"  over the seed, side by side now: {gain.words(decimals(gain.value, gain.over))}{share}")
    for said, style in ((found.against, "red"), (found.differs, "yellow")):
        for line in said:
            parts = wrap(escape(line), max(view.width - 2, 20)) if view.width else [escape(line)]
            yield from (Text(f"  {part}", style) for part in parts)


def _record(found: Verification) -> dict[str, Any]:
    sides: dict[str, dict[str, Any] | None] = {RECORDED: None}
    for which, told in ((RECORDED, found.recorded), (AGAIN, found.again)):
        if told is None:
            continue
        margins = {name: finite(found.scores.margin(which, None, name)) for name in told.metrics}
        about = {"status": told.status, "reason": told.reason, "metrics": dict(told.metrics), "margins": margins}
        sides[which] = {**about, "times": found.times(which), "evaluator": told.evaluator, "image": told.image}
    return {
        "commit": found.candidate.commit,
        "split": found.split,
        "holds": found.holds,
        "under_load": found.under_load,
        **sides,
        "differs": list(found.differs),
        "against": list(found.against),
    }
