"""`evogit land`: prepares and evaluates the merge of a candidate into a person's branch."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Iterator
from typing import Any

import click
from msgspec import Struct, to_builtins
from rich.text import Text

from evogit.cli.confirming import asks, check_confirmable, confirm
from evogit.cli.lines.outputs import output_lines
from evogit.cli.lines.steps import step_lines, step_record
from evogit.cli.lines.view import SHORT, View, first_line
from evogit.cli.locate_run import Place
from evogit.cli.options.shared import REVISION, reason_option, with_judged_run, with_terminal
from evogit.cli.terminal import Terminal, table
from evogit.cli.text import escape, number
from evogit.config import Task
from evogit.core import Evaluation, RefusedError, UsageError
from evogit.engine.comparability import changed_judge, judged_anew
from evogit.events import Entry
from evogit.history.standing import decimals
from evogit.review import SCHEMA, resolve
from evogit.review.landed_steps import DiffSize
from evogit.review.landing import Landing, SplitTrial, measure, objections, prepare
from evogit.review.landing import land as make
from evogit.review.landing_text import LandingText, describe
from evogit.review.risks import risks
from evogit.review.same_output import compare_outputs

HEADS = ("", "", "branch", "landed", "gain", "candidate")


@click.command()
@click.argument("rev", type=REVISION)
@click.option("--squash", is_flag=True, help="One commit of yours instead of a merge.")
@click.option("--steps", is_flag=True, help="One commit of yours for each step instead of a merge.")
@click.option("--pr", is_flag=True, help="Print the text and commands of a pull request; nothing is sent.")
@click.option("--onto", metavar="BRANCH", help="The branch to merge it into; default: the one you are on.")
@click.option("--force", is_flag=True, help="Land even if the result fails or does not improve on the branch.")
@reason_option
@asks
@with_judged_run
@with_terminal
def land(
    place: Place, task: Task, terminal: Terminal, rev: str, sandbox: str, yes: bool, dry_run: bool, **how: Any
) -> None:
    """Make a branch evogit/RUN/land/ID that merges REV into yours, and print the command that takes it over.

    What changed on your branch meanwhile is merged with it, and the result is evaluated again, beside your branch as it
    is. Your branch, your checkout and your index stay as they are: merging is up to you.
    """
    _Landing(place=place, terminal=terminal, task=task, **how).go(rev, sandbox, yes, dry_run)


class _Landing(Struct, frozen=True, kw_only=True):
    """One landing, from the plan to the command that merges it."""

    place: Place
    terminal: Terminal
    task: Task
    squash: bool
    steps: bool
    pr: bool
    onto: str | None
    force: bool
    reason: str

    def go(self, rev: str, sandbox: str, yes: bool, dry_run: bool) -> None:
        """Show what would be merged and what it is worth, ask, make the branch, and say how to merge it."""
        place, terminal = self.place, self.terminal
        if self.squash and self.steps:
            raise UsageError("expected --squash, which makes one commit, or --steps, which makes one for each step")
        candidate, squash = resolve(place.history, rev), self.squash or self.steps
        plan = asyncio.run(prepare(place.repository, place.history, candidate, self.onto, squash=squash))
        dangers = risks(place.repository, plan.tip_tree, plan.tree)
        size = DiffSize.of(place.repository, plan.tip_tree, plan.tree)
        kind = "one commit" if self.squash else "a commit for each step" if self.steps else "a merge"
        planned = _planned(View.of(place.history, terminal), plan, size, kind)
        for line in (*planned, *_listed("look at:", dangers)):
            terminal.note(line)
        if not dry_run:  # before the evaluation, which may take long, what would be refused after it
            place.repository.branches.person()
            if not yes:
                check_confirmable(terminal)
        terminal.note("evaluating the branch as it is and with the change", "dim")
        trials = terminal.run(
            measure(place.repository, self.task, plan, sandbox, place.history.split), "evaluating both side by side"
        )
        for line in _measured(View.of(place.history, terminal), self.task, candidate.commit, trials):
            terminal.note(line)
        changed = changed_judge(place.history, self.task)
        if changed is not None:
            terminal.note(f"  {first_line(judged_anew(changed))}", "yellow")
        trees, ok = (plan.tip_tree, plan.tree), all(trial.after.ok for trial in trials)
        comparing = compare_outputs(place.repository, self.task, *trees, sandbox) if ok else None
        same = terminal.run(comparing, "comparing what both print") if comparing else None
        against = objections(self.task.primary, trials) + ([same.summary] if same and same.objection else [])
        remarks = [f"{same.summary}."] if same else []
        text = describe(place.repository, place.history, plan, trials, self.task.goal, self.reason, remarks)
        steps = step_lines(View.of(place.history, terminal), text.steps)
        for line in (*output_lines(same), *steps, *_listed("but:", against)):
            terminal.note(line)
        if against and not self.force and not dry_run:
            raise RefusedError(f"{against[0]}; nothing was created (--force lands it anyway)")
        entry = None if dry_run else self._make(plan, text, yes)
        if terminal.json:
            more = {"risks": dangers, "objections": against, "same_output": to_builtins(same)}
            terminal.data({**self._record(plan, trials, text, entry), **more})
        if entry is None:
            terminal.note("nothing was changed", "dim")
        else:
            self._say_how_to_go_on(plan, text, entry)

    def _make(self, plan: Landing, text: LandingText, yes: bool) -> Entry:
        if not yes:
            confirm(self.terminal)
        commits = text.series if self.steps else [(plan.tree, text.message(squash=self.squash))]
        entry = make(self.place, plan, commits, self.reason, squash=self.squash or self.steps)
        if self.pr:
            run, commit = self.place.history.run, plan.candidate.commit
            self.place.repository.keep_landing_text(run, commit, text.pull_request())
        return entry

    def _record(
        self, plan: Landing, trials: list[SplitTrial], text: LandingText, entry: Entry | None
    ) -> dict[str, Any]:
        """Return what was made; `decision` and `commit` are None after a dry run."""
        return {
            "schema": SCHEMA,
            "decision": entry.id if entry else None,
            "commit": self.place.repository.target(plan.branch) if entry else None,
            "candidate": plan.candidate.commit,
            "branch": plan.branch,
            "onto": plan.target,
            "squash": self.squash,
            "changed": list(plan.paths),
            "size": to_builtins(DiffSize.of(self.place.repository, plan.tip_tree, plan.tree)),
            "steps": [step_record(step) for step in text.steps],
            "task_changed": changed_judge(self.place.history, self.task),
            "evaluations": [to_builtins(trial) for trial in trials],
            "title": text.title if self.pr else text.headline(squash=self.squash),
            "body": text.pull_request(),
            "commands": self._commands(plan, text),
        }

    def _say_how_to_go_on(self, plan: Landing, text: LandingText, entry: Entry) -> None:
        terminal, place = self.terminal, self.place
        if self.pr and not terminal.json:
            lines = [text.title, "", *text.pull_request().splitlines()]
            terminal.print([Text(escape(line)) for line in lines])
        labels = ("push with ", "ask with  ") if self.pr else ("merge with",)
        for label, command in zip(labels, self._commands(plan, text), strict=True):
            terminal.note(Text.assemble((f"{label}  ", "dim"), command))
        terminal.note(Text.assemble(("undo with   ", "dim"), place.hint(f"undo {entry.id[:SHORT]}")))

    def _commands(self, plan: Landing, text: LandingText) -> list[str]:
        place, branches = self.place, self.place.repository.branches
        source, target = (ref.removeprefix("refs/heads/") for ref in (plan.branch, plan.target))
        if self.pr:
            what = shlex.quote(text.title)
            file = shlex.quote(os.path.relpath(place.repository.landing_text(place.history.run, plan.candidate.commit)))
            push = place.git(f"push {shlex.quote(branches.remote(plan.target))} {source}")
            return [
                push,
                f"gh pr create --base {shlex.quote(target)} --head {source} --title {what} --body-file {file}",
            ]
        worktree = branches.worktree(plan.target)
        if worktree is None:
            return [place.git(f"fetch . {source}:{shlex.quote(target)}")]
        return [place.git(f"merge --ff-only {source}", worktree)]


def _planned(view: View, plan: Landing, size: DiffSize, kind: str) -> Iterator[Text]:
    onto = escape(plan.target.removeprefix("refs/heads/"))
    yield Text("land  ", "bold").append_text(view.line(plan.candidate, score=True))
    yield Text(f"  onto {onto} ({plan.tip[:SHORT]}), as {kind}")
    names = ", ".join(escape(path) for path in plan.paths[:5])
    yield Text(f"  {size}: {names}{' ...' * (len(plan.paths) > 5)}")
    if plan.replaces:
        yield Text(f"  replaces {plan.branch.removeprefix('refs/heads/')}, which was made before", "yellow")


def _listed(title: str, sentences: list[str]) -> Iterator[Text]:
    if sentences:
        yield Text(f"  {title}", "yellow")
    for sentence in sentences:
        yield Text(f"    {escape(sentence)}")


def _measured(view: View, task: Task, commit: str, trials: list[SplitTrial]) -> Iterator[Text]:
    history = view.history
    comparable = changed_judge(history, task) is None
    if task.pairwise:
        what = "; ".join(f"{trial.split}: {trial.before.status} -> {trial.after.status}" for trial in trials)
        yield Text(f"  {what}; `evogit judge --list` says which is better")
        return
    rows = []
    for trial in trials:
        for metric in sorted(task.metrics, key=lambda metric: not metric.primary):
            before, after = (_value(each, metric.name) for each in (trial.before, trial.after))
            alone = _value(history.evaluation(commit, trial.split) if comparable else None, metric.name)
            margins, compared = trial.margins.get(metric.name, (0.0,) * 3), trial.compared(metric)
            places = decimals(before, after, margins=margins)
            values = zip((before, after), margins, strict=False)
            cells = [view.measured(*pair, places) for pair in values]
            gain = compared.between(places, view.glyphs.give) if compared else ""
            share = f" ({compared.relative})" if compared and compared.relative else ""
            cells += [gain + share, number(alone, places)]
            rows.append([Text(trial.split, "dim"), Text(metric.name), *map(Text, cells)])
    yield from (Text("  ").append_text(line) for line in table(rows, "llrrrr", HEADS))
    if any(trial.after.judged == "inside" for trial in trials):
        yield Text("  judged: inside, where the candidate's code could have cheated; read the diff", "yellow")


def _value(evaluation: Evaluation | None, metric: str) -> float | None:
    return evaluation.metrics.get(metric) if evaluation and evaluation.ok else None
