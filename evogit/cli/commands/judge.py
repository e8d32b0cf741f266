"""`evogit judge`: compare two candidates, and see how all rank by what models and people said."""

from __future__ import annotations

import random
from typing import Any

import click
from msgspec import to_builtins
from rich.text import Text

from evogit.cli.lines.compare import patch_lines
from evogit.cli.lines.view import View, first_line
from evogit.cli.locate_run import Place, open_place, task_of
from evogit.cli.options.shared import REVISION, TASK, name_option, with_repo, with_terminal
from evogit.cli.terminal import Terminal, table
from evogit.cli.text import count, escape, percent
from evogit.config import Task
from evogit.core import NotFoundError, UsageError
from evogit.events import Compared
from evogit.history.pair_views import NO_CHANGE, Views
from evogit.history.strengths import judges, kept_reason
from evogit.review import SCHEMA, resolve
from evogit.review.judging import next_pair, say, standings, strengths_of

KEYS = "1 or 2 (which is better), = (equal), s (skip), q (quit)"
HEADS = ("judge", "verdicts", "agrees", "names the first", "knows", "trusted")
MAX_RANKED = 20


@click.command()
@click.argument("a", type=REVISION, required=False)
@click.argument("b", type=REVISION, required=False)
@click.option("-n", "pairs", type=click.IntRange(min=1), metavar="N", help="Stop after N comparisons.")
@click.option("--winner", type=click.Choice(["a", "b", "tie"]), help="The better one of A and B.")
@click.option("-m", "--reason", default="", metavar="WHY", help="Why it won.")
@click.option("--list", "status", is_flag=True, help="List the ranking of candidates and judges; ask nothing.")
@click.option("--task", type=TASK, help="The task's folder, if it cannot be found here.")
@name_option
@with_repo
@with_terminal
def judge(
    terminal: Terminal,
    repo: str | None,
    name: str | None,
    a: str | None,
    b: str | None,
    pairs: int | None,
    winner: str | None,
    reason: str,
    status: bool,
    task: str | None,
) -> None:
    """Compare pairs of candidates, where the task's kind is "judge"; each time the most informative pair.

    Type 1 or 2 for the better one, = for equal ones, s to skip, q to quit; words after it are kept as the reason.
    `A B --winner a` says it without being asked. With --json alone: the next pair as data.
    """
    if a and not b:
        raise UsageError("expected two candidates, or none")
    pair = (a, b) if a and b else None
    if status and (pairs or pair or winner or reason):
        raise UsageError("expected --list alone, which asks nothing and keeps nothing, or no --list")
    place = open_place(repo, name)
    strengths_of(place.history)
    if pair or winner or reason:
        _keep_verdict(place, terminal, pair, winner, reason)
    elif status:
        _status(place, terminal)
    else:
        try:
            found = task_of(place.history.run, repo, task)
        except UsageError as error:
            raise UsageError(f"{error}; here: evogit judge --task FOLDER") from error
        if terminal.json:
            _show_next(place, terminal, found)
        else:
            _ask(place, terminal, found, pairs)


def _keep_verdict(
    place: Place, terminal: Terminal, pair: tuple[str, str] | None, winner: str | None, reason: str
) -> None:
    if pair is None or winner is None:
        raise UsageError("expected both: evogit judge A B --winner a|b|tie")
    one, other = (resolve(place.history, name).commit for name in pair)
    verdict = _verdict(place, (one, other), winner, reason)
    say(place, verdict)
    if terminal.json:
        terminal.data({"schema": SCHEMA, **to_builtins(verdict)})
    terminal.note(f"kept as what {first_line(verdict.judge)} said; see `evogit judge --list`", "dim")


def _verdict(place: Place, pair: tuple[str, str], winner: Any, reason: str) -> Compared:
    who, why = place.repository.user, kept_reason(reason)
    return Compared(judge=who, by="person", a=pair[0], b=pair[1], winner=winner, reason=why, swapped=False)


def _show_next(place: Place, terminal: Terminal, task: Task) -> None:
    pair = next_pair(place.history, random.Random())
    sides, pairwise = Views(place.repository, task, place.history).pair(*pair), task.pairwise
    patches = {"a": {"commit": pair[0], "patch": sides.first}, "b": {"commit": pair[1], "patch": sides.second}}
    about = {"goal": task.goal, "criteria": pairwise.criteria if pairwise else ""}
    terminal.data({"schema": SCHEMA, "run": place.history.run, **about, **patches})


def _ask(place: Place, terminal: Terminal, task: Task, most: int | None) -> None:
    if not terminal.interactive:
        raise UsageError("expected a terminal to ask on, or A B --winner a|b|tie, or --json, or --list")
    views, rng, skipped, kept = Views(place.repository, task, place.history), random.Random(), set[frozenset[str]](), 0
    while most is None or kept < most:
        place.journal.refresh()
        try:
            pair = next_pair(place.history, rng, skipped)
        except NotFoundError as error:
            terminal.note(str(error))
            break
        sides, pairwise = views.pair(*pair), task.pairwise
        lines = [Text("")]
        for head, text in (("goal", task.goal), ("criteria", pairwise.criteria if pairwise else "")):
            lines.append(Text.assemble((f"{head}  ", "dim"), " ".join(escape(text).split())))
        for number, patch in ((1, sides.first), (2, sides.second)):
            lines += [Text(""), Text(f"candidate {number}", "bold reverse")]
            lines += patch_lines(patch) if patch else [Text(NO_CHANGE, "dim")]
        terminal.show(lines)
        key, reason = _answer(terminal)
        if key == "q":
            break
        if key == "s":
            skipped.add(frozenset(pair))
            continue
        say(place, _verdict(place, pair, {"1": "a", "2": "b", "=": "tie"}[key], reason))
        kept += 1
    terminal.note(f"{count(kept, 'verdict')} kept; see `evogit judge --list`")


def _answer(terminal: Terminal) -> tuple[str, str]:
    while True:
        try:
            answer = click.prompt(f"Which is better? {KEYS}", prompt_suffix=" ", err=True).strip()
        except click.Abort:
            return "q", ""
        key, reason = answer[:1].lower(), answer[1:]
        if key in ("1", "2", "=") and (not reason or not reason[0].isalnum()):
            return key, reason
        if answer.partition(" ")[0].lower() in ("s", "skip", "q", "quit"):
            return key, ""
        terminal.note(f"expected {KEYS}, got {escape(answer)}")


def _status(place: Place, terminal: Terminal) -> None:
    ranked, known = standings(place.history), judges(strengths_of(place.history))
    if terminal.json:
        candidates = [to_builtins(each) for each in ranked]
        terminal.data({"schema": SCHEMA, "candidates": candidates, "judges": [to_builtins(each) for each in known]})
        return
    view = View.of(place.history, terminal)
    rows: list[list[Text | str]] = []
    for each in ranked[:MAX_RANKED]:
        name = Text.assemble(view.glyph(each.commit), " ", view.name(each.commit))
        strength = f"{each.strength:.2f} ± {each.margin:.2f}"
        title = first_line(view.history.phylogeny[each.commit].title)
        rows.append([name, strength, count(each.verdicts, "verdict"), title])
    lines = table(rows, "lrrl")
    if len(ranked) > MAX_RANKED:
        lines.append(Text(f"and {count(len(ranked) - MAX_RANKED, 'candidate')} behind them; all with --json", "dim"))
    records = []
    for record in known:
        shares = [percent(part / record.decided if record.decided else None) for part in (record.agreed, record.first)]
        who = first_line(record.judge) + ("" if record.by == "person" else " (model)")
        right = f"{record.right} of {record.calibrated}" if record.calibrated else "-"
        records.append([who, f"{record.verdicts:,}", *shares, right, percent(record.reliability)])
    none = Text("no verdicts yet: `evogit judge` asks you, and [evaluator] panel names models that are asked", "dim")
    terminal.show([*lines, Text(""), *(table(records, "lrrrrr", HEADS) if records else [none])])
