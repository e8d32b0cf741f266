"""`evogit minimize`: what of a candidate's change earns its score, as a change that a person can review."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import click
from rich.text import Text

from evogit.cli.lines.compare import patch_lines
from evogit.cli.lines.summary import next_steps
from evogit.cli.lines.view import SHORT, STYLES, View
from evogit.cli.locate_run import Place
from evogit.cli.options.shared import REVISION, jobs_option, with_judged_run, with_terminal
from evogit.cli.terminal import Terminal, table
from evogit.cli.text import count, escape, number
from evogit.config import Task
from evogit.history.standing import places
from evogit.repository import Hunk
from evogit.review import SCHEMA, candidate_record, resolve
from evogit.review.json_records import gain_record
from evogit.review.minimizing import Minimized, Part, Trial
from evogit.review.minimizing import minimize as search

MAX_EXCERPT_CHARS = 60


@click.command()
@click.argument("rev", type=REVISION)
@click.option("--evaluations", type=click.IntRange(1), default=100, metavar="N", help="New evaluations at most (100).")
@jobs_option
@with_judged_run
@with_terminal
def minimize(place: Place, task: Task, terminal: Terminal, rev: str, evaluations: int, jobs: int, sandbox: str) -> None:
    """Find the smallest part of what REV changes against the seed that is as good, and what each hunk of it brings.

    Every trial is a candidate of the run, so nothing is evaluated twice: the same command goes on where it was cut off.
    It may work beside a running engine. The smallest one can be landed like any other.
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
        terminal.note(Text.assemble(head, f"{count(trial.hunks, 'hunk'):>10}  ", score), fit="ellipsis")

    searching = search(place.about(task), candidate, tell, provider=sandbox, jobs=jobs, evaluations=evaluations)
    done = asyncio.run(searching)
    patch = place.repository.diff(place.history.seed or "", done.smallest)
    if terminal.json:
        terminal.data(_record(place, done, patch))
        return
    view = View.of(place.history, terminal)
    short = done.smallest[:SHORT]
    steps = [] if done.complete else [f"minimize {done.candidate[:SHORT]}"]
    if done.parts:
        steps.append(f"export {short} DIR" if place.repository.created else f"land {short} --squash")
    ways_on = next_steps(place, *steps, f"show {short}")
    terminal.show([*_outcome(view, done), *patch_lines(patch), Text(""), *ways_on])


def _outcome(view: View, done: Minimized) -> Iterator[Text]:
    history = view.history
    for commit, hunks in ((done.candidate, done.hunks), (done.smallest, len(done.parts))):
        yield Text.assemble(f"{count(hunks, 'hunk'):>10}  ", view.line(history.phylogeny[commit], score=True))
        if done.smallest == done.candidate:
            yield Text("nothing of it can be left out" if done.complete else "nothing was left out so far", "dim")
            break
    if not done.parts:
        yield Text("the seed is as good: nothing of the change is needed", "yellow")
    if not done.complete:
        yield Text(f"stopped after {count(done.judged, 'evaluation')}: perhaps more can be left out", "yellow")
    yield Text("")
    if done.parts:
        rows: list[list[Text | str]] = []
        for part in done.parts:
            line = "" if part.hunk.whole or part.hunk.mode else f":{part.hunk.start + 1}"
            rows.append([_gain(view, part), escape(part.hunk.path) + line, Text(_excerpt(part.hunk), "dim")])
        yield from table(rows, "rll", ("gain", "hunk", ""))
        yield Text("")


def _gain(view: View, part: Part) -> Text:
    if not part.measured:
        return Text("not measured", "dim")
    if part.gain is None:
        return Text("needed", "green")
    return Text(part.gain.between(view.places, view.glyphs.give), STYLES[part.gain.verdict])


def _excerpt(hunk: Hunk) -> str:
    if hunk.whole or hunk.mode:
        return "the file" if hunk.whole else "its mode"
    sign, lines = ("+", hunk.added) if hunk.added else ("-", hunk.removed)
    first = next((line for line in lines if line.strip()), lines[0]).decode(errors="replace")
    more = f" and {count(len(lines) - 1, 'line')} more" if len(lines) > 1 else ""
    return f"{sign} {escape(' '.join(first.split()))[:MAX_EXCERPT_CHARS]}{more}"


def _record(place: Place, done: Minimized, patch: str) -> dict[str, Any]:
    """`gain` is in the unit of the primary metric, positive is better; None where the rest fails or is not known."""
    history = place.history
    return {
        "schema": SCHEMA,
        "run": history.run,
        "candidate": candidate_record(history, history.phylogeny[done.candidate]),
        "smallest": candidate_record(history, history.phylogeny[done.smallest]),
        "hunks": done.hunks,
        "evaluations": done.judged,
        "complete": done.complete,
        "parts": list(map(_part_record, done.parts)),
        "patch": patch,
    }


def _part_record(part: Part) -> dict[str, Any]:
    hunk = part.hunk
    return {
        "path": hunk.path,
        "line": None if hunk.whole or hunk.mode else hunk.start + 1,
        "kind": "file" if hunk.whole else "mode" if hunk.mode else "lines",
        "removed": [line.decode(errors="replace") for line in hunk.removed],
        "added": [line.decode(errors="replace") for line in hunk.added],
        "measured": part.measured,
        "without": part.without,
        **gain_record(part.gain),
    }
