"""`evogit check`: evaluates the seed of a task, or work that is not committed, and says what is wrong."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import to_builtins
from rich.text import Text

from evogit.adopt import find_task
from evogit.cli.lines.outputs import output_lines
from evogit.cli.lines.view import STYLES, first_line
from evogit.cli.locate_run import seed_tree, task_context, task_here
from evogit.cli.options.shared import TASK, name_option, sandbox_option, with_repo, with_terminal
from evogit.cli.terminal import Terminal, table
from evogit.cli.text import count, escape, number
from evogit.config import Task
from evogit.core import Evaluation, Evidence, NotFoundError, RefusedError, UsageError
from evogit.engine.comparability import changed_judge, judged_anew
from evogit.history import History
from evogit.history.standing import Comparison, decimals
from evogit.review import SCHEMA

if TYPE_CHECKING:
    from evogit.repository import Repository
    from evogit.review.checking import SeedEvaluation
    from evogit.review.uncommitted import Work

EVALUATION_KEYS = ("split", "status", "metrics", "cases", "stages", "reason", "cost", "judged")

SLOW_S, PATIENCE_S = 10.0, 30.0
"""Evaluations that take longer are not repeated a dozen times; how long such repeats may take."""
MAX_PATHS = 8
MAX_OUTPUT_LINES = 20


@click.command()
@click.argument("task", type=TASK, required=False, metavar="[TASK|DIR]")
@click.option("--uncommitted", is_flag=True, help="Evaluate DIR (default: your checkout) with what is not committed.")
@click.option("--split", metavar="NAME", help="Evaluate only on this split; default: on all that task.toml lists.")
@click.option("--force", is_flag=True, help="With --uncommitted: leave out changes that no candidate may make.")
@click.option("--task", "of_task", type=TASK, help="With --uncommitted: the task, if it cannot be found here.")
@sandbox_option
@name_option
@with_repo
@with_terminal
def check(
    terminal: Terminal,
    repo: str | None,
    name: str | None,
    task: str | None,
    uncommitted: bool,
    split: str | None,
    force: bool,
    of_task: str | None,
    sandbox: str,
) -> None:
    """Evaluate the seed of TASK (a name or a folder) on every split, and say what is wrong.

    Default: the task of the repository that you are in. With --uncommitted, the folder is evaluated as a candidate
    would be, in the sandbox, on the editable paths that Git would track, on the run's split. Nothing is recorded. Exit
    code 1 when something is wrong.
    """
    if uncommitted:
        _check_uncommitted(terminal, task_context(of_task, repo, name), task, split, force, sandbox)
    elif force or of_task is not None:
        raise UsageError("expected --force and --task with --uncommitted")
    else:
        found = find_task(task) if task is not None else task_here(repo, name)[0]
        _check_seed(terminal, found, task, split, sandbox)


def _check_seed(terminal: Terminal, task: Task, typed: str | None, split: str | None, sandbox: str) -> None:
    from evogit.review.checking import exposed, judge_seed, problems
    from evogit.review.same_output import check_repeats
    from evogit.review.seed_numbers import sources_of

    splits = [split] if split else list(task.splits)
    task.check_split(splits[0])

    async def evaluate() -> list[SeedEvaluation]:
        judged = []
        async for each in judge_seed(task, splits, sandbox, again=True, break_it=not split):
            judged.append(each)
            if terminal.live:
                terminal.note(f"{each.evaluation.split}: {each.evaluation.status}", "dim")
        return judged

    judged = terminal.run(evaluate(), "evaluating the seed")
    shown = next((each for each in judged if each.evaluation.split == "train"), judged[0])
    sources = sources_of(task, shown.evaluation, shown.evidence)
    wrong = problems(task, judged) + [each.unread for each in sources if each.unread]
    same = None if wrong else terminal.run(check_repeats(task, sandbox), "comparing outputs")
    wrong += [same.problem] if same and same.problem else []
    blind = "" if wrong else next((each.blind for each in judged if each.blind), "")
    ways = [] if wrong or split else _gamed(task, judged, sandbox)
    if terminal.json:
        more = {"sources": to_builtins(sources), "same_output": to_builtins(same)}
        terminal.data(
            {**_seed_record(task, judged, wrong), **more, "broken_seed": blind, "gamed": ways, "exposed": exposed(task)}
        )
    else:
        origins = [Text(escape(line), "dim") for each in sources for line in each.lines()]
        verdict = [Text(escape(blind), "yellow")] if blind else _verdict(task, judged, wrong)
        failed = next((each for each in judged if not each.evaluation.ok), None)
        output = [Text(""), *_output(failed.evidence)] if failed else []
        profile = shown.profile.output.splitlines() if shown.profile.failure else []
        output += [Text(f"  {escape(line)}", "dim") for line in profile[-MAX_OUTPUT_LINES:]]
        origins += output_lines(same)
        lines = [*_table(task, judged), *output, Text(""), *origins, Text(""), *verdict]
        if not wrong and task.judged != "pairs":
            command = " ".join(["evogit audit", *([typed] if typed else [])])
            lines += [Text(escape(sentence), "yellow") for sentence in filter(None, [exposed(task)])]
            lines += [Text(f"can be gamed: {way}", "yellow") for way in ways]
            if ways:
                lines.append(Text(f"{command} shows how, and what to do", "yellow"))
            else:
                audit = f"{command}, which attacks the evaluator before candidates do"
                lines.append(Text.assemble(("try  ", "dim"), audit))
        terminal.show(lines)
    if wrong:
        sys.exit(1)


def _gamed(task: Task, judged: list[SeedEvaluation], sandbox: str) -> list[str]:
    """Return what a seed that remembers or predicts gains, if scores are times and that takes not too long."""
    from evogit.audit.attacks import gamed

    if sum(each.evaluation.cost.wall for each in judged) > SLOW_S:
        return []
    return [finding.what for finding in asyncio.run(gamed(task, sandbox, PATIENCE_S))]


def _table(task: Task, judged: list[SeedEvaluation]) -> list[Text]:
    """A line per split; and how far the scores of a task that declares them noisy lie apart."""
    from evogit.review.provable import told_provable

    heads = ["split", "status", *(metric.name for metric in task.metrics), "cases", "time", "CPU"]
    rows: list[list[Text | str]] = []
    for each in judged:
        evaluation, cost = each.evaluation, each.evaluation.cost
        status = Text(evaluation.status, "green" if evaluation.ok else "red")
        values = [evaluation.metrics.get(metric.name) for metric in task.metrics]
        shown = [number(value, decimals(value)) for value in values]
        times = [f"{cost.wall:.3f} s", f"{cost.cpu:.3f} s"]
        rows.append([evaluation.split, status, *shown, str(len(evaluation.cases)), *times])
    title = Text.assemble((task.name, "bold"), f", evaluated with the sandbox {judged[0].provider}")
    title.append(f"; judged: {task.judged}" if task.command else "")
    title.append(f"; timing: {judged[0].timing}")
    metric, noisy = task.primary.name, [each for each in judged if task.repeats and each.again]
    spreads = [f"{metric} {spread}" for each in noisy if (spread := each.told_spread(metric))]
    spreads += [sentence for each in noisy for sentence in told_provable(task, each)]
    lines = table(rows, "ll" + "r" * (len(task.metrics) + 3), heads)
    return [title, Text(""), *lines, *(Text(escape(sentence), "dim") for sentence in spreads)]


def _output(evidence: Evidence) -> list[Text]:
    text = evidence.stderr.decode(errors="replace") + evidence.log
    return [Text(f"  {escape(line)}", "dim") for line in text.splitlines()[-MAX_OUTPUT_LINES:]]


def _verdict(task: Task, judged: list[SeedEvaluation], wrong: list[str]) -> list[Text]:
    from evogit.review.checking import advice

    if not wrong:
        files = count(len(task.seed_files()), "seed file") if task.seed else "the seed is HEAD"
        return [Text(f"all is well: {files}, evaluator {task.evaluator_digest[:7]}", "green")]
    remedies = dict.fromkeys(advice(task, each) for each in judged if not each.evaluation.ok and not each.flaky)
    return [*(Text(escape(line), "red") for line in wrong), *(Text(escape(each)) for each in remedies if each)]


def _seed_record(task: Task, judged: list[SeedEvaluation], wrong: list[str]) -> dict[str, Any]:
    splits = []
    for each in judged:
        evaluation = to_builtins(each.evaluation)
        spread = {metric.name: each.spread(metric.name) for metric in task.metrics} if each.again else {}
        splits.append(
            {**{key: evaluation[key] for key in EVALUATION_KEYS}, "evaluations": each.times, "spread": spread}
        )
    about = {"schema": 1, "task": task.name, "provider": judged[0].provider, "evaluator": task.evaluator_digest}
    return {**about, "timing": judged[0].timing, "splits": splits, "problems": wrong}


def _check_uncommitted(
    terminal: Terminal,
    context: tuple[Task, Repository, History],
    named: str | None,
    split: str | None,
    force: bool,
    sandbox: str,
) -> None:
    from evogit.engine.run_key import inputs_of
    from evogit.evaluation.inputs import Inputs
    from evogit.review.same_output import compare_outputs
    from evogit.review.uncommitted import judge_work, read_work

    task, repository, history = context
    split = split or (history.split if history.started else "train")
    task.check_split(split)
    if named is None and repository.bare:
        raise UsageError("a bare repository has no checkout; name the folder: evogit check --uncommitted DIR")
    seed, folder = seed_tree(task, repository, history), Path(named) if named else repository.path
    if not folder.is_dir():
        raise NotFoundError(f"expected a folder to evaluate, got {folder}, which is not there")
    work = asyncio.run(read_work(repository, task, seed, folder))
    if work.protected and not force:
        raise RefusedError(
            f"no candidate may change {_names(work.protected)}; put them back as the seed has them, or leave these "
            "changes out with --force"
        )
    unchanged = "nothing that a candidate may change differs from the seed"
    terminal.note(f"{count(len(work.changed), 'file')} changed: {_names(work.changed)}" if work.changed else unchanged)
    for paths, why in ((work.protected, "are protected"), (work.left_out, "are no candidate's to add")):
        if paths:
            terminal.note(f"left out, as they {why}: {_names(paths)}", "yellow")
    drawing = inputs_of(repository, history) if history.started else Inputs.own()
    judging = judge_work(repository, task, seed, work, split=split, provider=sandbox, drawing=drawing)
    judged, same = terminal.run(judging, "evaluating the working tree"), None
    if judged[0].ok:
        same = terminal.run(compare_outputs(repository, task, seed, work.tree, sandbox), "comparing outputs")
    if terminal.json:
        terminal.data({**_record(task, folder, work, history, *judged), "same_output": to_builtins(same)})
    else:
        terminal.show([*_shown(task, history, *judged), *output_lines(same)])
    if not judged[0].ok or (same and same.objection):
        sys.exit(1)


def _names(paths: tuple[str, ...]) -> str:
    more = f" and {count(len(paths) - MAX_PATHS, 'more path')}" if paths[MAX_PATHS:] else ""
    return ", ".join(escape(path) for path in paths[:MAX_PATHS]) + more


def _shown(task: Task, history: History, evaluation: Evaluation, evidence: Evidence) -> Iterator[Text]:
    cost = evaluation.cost
    about = f" on {evaluation.split}, {cost.wall:.2f} s, {cost.cpu:.2f} s CPU"
    inside = "  judged: inside" if evaluation.judged == "inside" else ""
    yield Text.assemble((evaluation.status, "green" if evaluation.ok else "red"), about, inside)
    yield from (Text(escape(line), "red") for line in evaluation.reason.splitlines())
    yield Text("")
    changed = changed_judge(history, task)
    if changed is not None:
        yield Text(first_line(judged_anew(changed)), "yellow")
    yield from _against(task, history, evaluation)
    for name in dict.fromkeys([*evaluation.cases, *evidence.feedback]):
        values = ", ".join(f"{metric} {value:.6g}" for metric, value in evaluation.cases.get(name, {}).items())
        yield Text(f"  {escape(name)}: {values}".rstrip(": "), "dim")
        yield from (Text(f"    {escape(line)}") for line in evidence.feedback.get(name, "").splitlines())
    if not evaluation.ok:
        yield from _output(evidence)


def _against(task: Task, history: History, evaluation: Evaluation) -> list[Text]:
    if task.pairwise:
        return [Text("pairs decide which is better: add it to a run, then `evogit judge`", "dim")]
    others = _others(task, history, evaluation.split)
    heads = ["", "this", *(cell for name in others for cell in (name, "gain"))]
    rows = []
    for metric in sorted(task.metrics, key=lambda metric: not metric.primary):
        noisy = bool(others and task.repeats)
        noise = history.scores.noise(evaluation.split, metric.name).margin(1, 1) if noisy else 0.0
        value, former = evaluation.metrics.get(metric.name), [each.get(metric.name) for each in others.values()]
        places = decimals(value, *former)
        cells = [Text(metric.name, "bold" if metric.primary else ""), Text(number(value, places), "bold")]
        for other in former:
            cells.append(Text(number(other, places)))
            compared = None if value is None or other is None else Comparison.of(metric, value, other, noise)
            cells.append(Text(compared.text(places), STYLES[compared.verdict]) if compared else Text(""))
        rows.append(cells)
    return table(rows, "lr" + "rr" * len(others), heads) if evaluation.ok else []


def _others(task: Task, history: History, split: str) -> dict[str, dict[str, float]]:
    """Return the metrics of the seed and of the best, as far as they were evaluated by this task."""
    if changed_judge(history, task) is not None:
        return {}
    commits = {"seed": history.seed, "best": history.best}
    found = {name: history.evaluation(commit, split) for name, commit in commits.items() if commit}
    return {name: dict(each.metrics) for name, each in found.items() if each and each.ok}


def _record(
    task: Task, folder: Path, work: Work, history: History, evaluation: Evaluation, evidence: Evidence
) -> dict[str, Any]:
    judged = json.loads(json.dumps(to_builtins(evaluation)))
    paths = {"changed": list(work.changed), "protected": list(work.protected), "left_out": list(work.left_out)}
    others = {"seed": None, "best": None, **_others(task, history, evaluation.split)}
    texts = {"feedback": dict(evidence.feedback), "stderr": evidence.stderr.decode(errors="backslashreplace")}
    where: dict[str, Any] = {"schema": SCHEMA, "task": task.name, "folder": str(folder), "tree": work.tree}
    where["task_changed"] = changed_judge(history, task)
    return {**where, **paths, **{key: judged[key] for key in EVALUATION_KEYS}, **texts, **others}
