"""`evogit audit`: attack a task's evaluator before candidates do."""

from __future__ import annotations

import asyncio
import math
import os
import sys
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import click
from msgspec.structs import asdict
from rich.text import Text

from evogit.adopt import find_task
from evogit.audit.attack import MODEL, Attack, Audited, Finding, audited, write
from evogit.audit.attacks import chosen
from evogit.audit.laboratory import Laboratory
from evogit.audit.proposed import BY_MODEL, attack_by
from evogit.cli.options.shared import TASK, OutputPath, sandbox_option, with_repo, with_terminal
from evogit.cli.terminal import Terminal, table
from evogit.cli.text import count, escape, number
from evogit.core import RefusedError, UsageError
from evogit.history.standing import decimals
from evogit.llm.command_account import CommandAccount

MAX_SECONDS = 50.0
"""The time for all attacks, and again for those of a model."""

MAX_DIFF_LINES = 14


@click.command()
@click.argument("task", type=TASK, required=False)
@click.option("--only", "names", metavar="NAME", multiple=True, help="Only this attack; may be repeated.")
@click.option("--list", "listed", is_flag=True, help="List the attacks.")
@click.option("--output", "out", metavar="DIR", type=OutputPath(file_okay=False), help="Write what cheats to DIR.")
@click.option("--model", metavar="MODEL", help="Have this model read the goal and the evaluator, and propose attacks.")
@click.option("--dollars", type=click.FloatRange(min=0), metavar="D", help="Limit of what the model costs.")
@sandbox_option
@with_repo
@with_terminal
def audit(
    terminal: Terminal,
    repo: str | None,
    task: str | None,
    names: tuple[str, ...],
    listed: bool,
    out: Path | None,
    model: str | None,
    dollars: float | None,
    sandbox: str,
) -> None:
    """Attack the evaluator of TASK (a name or a folder), and show how it can be cheated.

    Programs made of the seed are evaluated as candidates are. Each one that scores without earning it is shown, with
    the line to blame and the remedy; then the exit code is 1. TASK defaults to the task of the current repository.
    Without --model, only cheats that need no understanding of the goal are tried. MODEL is shown the evaluator; its
    attacks come last, and their evaluations may take as long again.
    """
    from evogit.cli.locate_run import task_here

    attacks = chosen(names)
    if listed:
        shown: list[Any] = [*attacks, BY_MODEL] if not names or MODEL in names else [*attacks]
        if terminal.json:
            records = [{"name": attack.name, "tries": attack.tries, "remedy": attack.remedy} for attack in shown]
            terminal.data({"schema": 1, "attacks": records})
        else:
            rows = ((Text(attack.name, "bold"), attack.tries) for attack in shown)
            terminal.show(table(rows, "ll", ("attack", "what the candidate does")))
        return
    if not math.isfinite(dollars or 0.0):
        raise UsageError("expected a finite number of --dollars")
    if model is None and (MODEL in names or dollars is not None):
        raise UsageError("expected a model that is asked: --model MODEL")
    if model is not None and names and MODEL not in names:
        raise UsageError(f"expected --only {MODEL}, too, as --model names one that is asked")
    audited_task = find_task(task) if task is not None else task_here(repo, None)[0]
    audited_task.check_trust(sandbox, model or "")
    if out is not None:  # before anything is done that would be lost without it
        _make(out)
    if audited_task.judged == "pairs":
        raise RefusedError(f"{audited_task.name}: pairs of candidates are compared; there is no score to forge")
    laboratory = Laboratory(audited_task, sandbox, seconds=MAX_SECONDS)
    if asyncio.run(_audit(terminal, laboratory, attacks, out, _asking(model, dollars, audited_task.variables))):
        sys.exit(1)


def _make(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot make {out}: {error.strerror}; choose another folder with --output DIR") from error
    if any(out.iterdir()):
        raise RefusedError(f"expected {out} to be absent or an empty folder; choose another one with --output DIR")


@asynccontextmanager
async def _asking(name: str | None, dollars: float | None, variables: Collection[str]) -> AsyncIterator[list[Attack]]:
    """Open the attack that asks a model. Raise UsageError if dollars are limited and its price is not known."""
    if name is None:
        yield []
        return
    from evogit.config.user_settings import load_user_settings
    from evogit.llm.registry import open_models

    models = open_models(load_user_settings(os.environ))
    try:
        model = models.get(name)
        if dollars is not None and model.price is None:
            raise UsageError(f"expected a known price of {name} to keep --dollars; say it in your settings")
        models.forget_keys(variables)
        yield [attack_by(model, CommandAccount(dollars), MAX_SECONDS)]
    finally:
        await models.close()


async def _audit(
    terminal: Terminal, laboratory: Laboratory, attacks: list[Attack], out: Path | None, asking: Any
) -> list[Finding]:
    async with asking as by_model, laboratory as lab:
        if terminal.live:
            lab.say = partial(terminal.note, style="dim")
        if not lab.seed.evaluation.ok:
            reason = f"the seed fails ({lab.seed.evaluation.status}): {lab.seed.evaluation.reason}; see `evogit check`"
            raise RefusedError(f"{lab.task.name} cannot be audited: {reason}")
        results = []
        async for result in audited(lab, [*attacks, *by_model]):
            results.append(result)
            if terminal.live:
                terminal.note(f"{result.attack.name}: {result.outcome}", "dim")
        findings = [finding for result in results for finding in result.findings]
        folders = [str(folder) for folder in write(findings, out, lab)] if out else []
        score = lab.seed.evaluation.metrics[lab.task.primary.name]
        seed = f"the seed has {lab.task.primary.name} {number(score, decimals(score))} on {lab.split}"
        numbers = f"{count(len(results), 'attack')}, {count(lab.evaluations, 'evaluation')}"
        head = Text.assemble((lab.task.name, "bold"), f", judged: {lab.task.judged}; {seed}. {numbers}.")
        if terminal.json:
            terminal.data(_report(lab, results, folders))
        else:
            terminal.show([head, *_findings(findings, folders), *_foot(lab, results, asked=bool(by_model))])
    if (unasked := _unasked(results)) and not findings:
        raise RefusedError(f"{unasked[0]}; its attacks were not tried to the end")
    return findings


def _findings(findings: list[Finding], folders: list[str]) -> list[Text]:
    lines: list[Text] = []
    for place, finding in enumerate(findings):
        lines.append(Text.assemble((finding.attack, "bold red"), f"  {escape(finding.what)}"))
        places = decimals(finding.value, finding.seed)
        value = "no score: the evaluation fails" if finding.value is None else number(finding.value, places)
        text = f"{value} on {finding.split}; the seed {number(finding.seed, places)}"
        lines.append(Text.assemble(("  score   ", "dim"), text))
        if finding.source:
            lines.append(Text.assemble(("  blame   ", "dim"), f"{finding.line}  ", (escape(finding.source), "cyan")))
        lines.append(Text.assemble(("  remedy  ", "dim"), finding.remedy))
        if finding.stricter:
            lines.append(Text("  the evaluator, as the model suggests", "dim"))
            lines += [Text(f"    {escape(line)}", "green") for line in _excerpt(finding.stricter, "+-")]
            lines.append(Text("  the candidate", "dim"))
        if folders:
            lines.append(Text.assemble(("  files   ", "dim"), escape(folders[place])))
        else:
            lines += [Text(f"    {escape(line)}", "dim") for line in _excerpt(finding.diff)]
        lines.append(Text(""))
    return lines


def _excerpt(diff: str, marks: str = "+") -> list[str]:
    changed = [line for line in diff.splitlines() if line[:1] in marks and line[:3] not in ("+++", "---")]
    lines = [line[:120] for line in changed if line.strip("+- ")]
    more = len(lines) - MAX_DIFF_LINES
    rest = [f"... {count(more, 'more line')}; --output DIR writes all of it"] if more > 0 else []
    return lines[:MAX_DIFF_LINES] + rest


def _foot(lab: Laboratory, results: list[Audited], *, asked: bool) -> list[Text]:
    """Report what was not tried, too: an audit without a finding proves nothing."""
    names: dict[str, list[str]] = {}
    for result in results:
        names.setdefault(result.outcome, []).append(result.attack.name)
    lines = [Text(escape(note), "yellow") for note in [*lab.notes, *_unasked(results)]]
    if late := names.get("no time left"):
        lines.append(Text(f"no time for {', '.join(late)}; --only NAME tries one alone", "yellow"))
    if worked := names.get("found"):
        text = f"{len(worked)} of {count(len(results), 'attack')} worked; docs/auditing.md explains them"
        lines.append(Text(text, "red"))
    else:
        tried = len(names.get("held", []))
        lines.append(Text(f"no attack worked ({tried} tried)", "yellow" if late or _unasked(results) else "green"))
    untried = [f"{', '.join(idle)} (not for this task)"] if (idle := names.get("does not apply")) else []
    if not asked:
        untried.append("cheats that only a reader of the goal sees: --model M has a model look for them")
    return [*lines, *([Text(f"not tried: {'; '.join(untried)}", "yellow")] if untried else [])]


def _unasked(results: list[Audited]) -> list[str]:
    return [result.unasked for result in results if result.unasked]


def _report(lab: Laboratory, results: list[Audited], folders: list[str]) -> dict[str, Any]:
    findings = [asdict(finding) for result in results for finding in result.findings]
    for place, finding in enumerate(findings):
        finding["files"] = sorted(finding["files"])
        if folders:
            finding["folder"] = folders[place]
    return {
        "schema": 1,
        "task": lab.task.name,
        "split": lab.split,
        "judged": lab.task.judged,
        "seed": dict(lab.seed.evaluation.metrics),
        "evaluations": lab.evaluations,
        "attacks": [{"name": result.attack.name, "outcome": result.outcome} for result in results],
        "notes": [*lab.notes, *_unasked(results)],
        "findings": findings,
    }
