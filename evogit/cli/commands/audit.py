"""`evogit audit`: attack a task's evaluator before candidates do."""

from __future__ import annotations

import asyncio
import math
import os
import sys
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import click
from msgspec import Struct
from rich.text import Text

from evogit.adopt import find_task
from evogit.audit.attack import Attack, AttackKind, Finding
from evogit.audit.auditing import MODEL, Audited, audited, chosen, task_problems, write
from evogit.audit.laboratory import Laboratory
from evogit.audit.proposed import BY_MODEL, attack_by
from evogit.audit.spending import AuditAccount
from evogit.cli.options.shared import TASK, OutputPath, sandbox_option, with_repo, with_terminal
from evogit.cli.terminal import Terminal, table
from evogit.cli.text import count, escape, number
from evogit.core import RefusedError, UsageError
from evogit.history.standing import decimals

LINES = 14
"""Lines of a candidate's diff that are shown where it is not written to a folder."""


@click.command()
@click.argument("task", type=TASK, required=False)
@click.option("--only", "names", metavar="NAME", multiple=True, help="Only this attack or family; may be repeated.")
@click.option("--list", "listed", is_flag=True, help="List the attacks.")
@click.option(
    "--out",
    metavar="DIR",
    type=OutputPath(file_okay=False),
    help="Write the files of each candidate that cheats into this folder.",
)
@click.option("--split", metavar="NAME", default="train", show_default=True, help="The split that is attacked.")
@click.option("--seconds", type=click.FloatRange(min=1), default=50.0, show_default=True, help="How long it may take.")
@click.option(
    "--model",
    metavar="MODEL",
    help="Have this model read the evaluator and propose attacks, too; `--only model`: nothing else.",
)
@click.option(
    "--dollars",
    type=click.FloatRange(min=0),
    metavar="D",
    help="What the model may cost at most; its price must be known.",
)
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
    split: str,
    seconds: float,
    model: str | None,
    dollars: float | None,
    sandbox: str,
) -> None:
    """Attack the evaluator of TASK (a name or a folder), and say how it can be cheated.

    Programs made of the seed are evaluated as candidates are; each of those that scores without earning it is shown,
    with the line to blame and the remedy. Exits with 1 when there is any. Default: the task of the repository that you
    are in. MODEL is shown the evaluator; its attacks come last, and their evaluations may take as long again.
    """
    from evogit.cli.locate_run import task_here

    attacks = chosen(names)
    if listed:
        _list(terminal, [*attacks, BY_MODEL] if not names or MODEL in names else attacks)
        return
    asked = _Asked(model, dollars, seconds)
    asked.check(names)
    found = find_task(task) if task is not None else task_here(repo, None)[0]
    found.check_split(split)
    found.check_trust(sandbox, model or "")
    if out is not None:
        _make(out)
    if found.judged == "pairs":
        raise RefusedError(f"{found.name}: people or models compare pairs of candidates; there is no score to forge")
    laboratory = Laboratory(found, sandbox, split=split, seconds=seconds)
    findings = asyncio.run(_audit(terminal, laboratory, attacks, out, asked))
    if findings:
        sys.exit(1)


def _make(out: Path) -> None:
    """Make the folder before anything is done that would be lost without it."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot make {out}: {error.strerror}; choose another folder with --out DIR") from error
    if any(out.iterdir()):
        raise RefusedError(f"expected {out} to be absent or an empty folder; choose another one with --out DIR")


class _Asked(Struct, frozen=True):
    """What model is asked, if one is; for how much; and how long its attacks may take."""

    model: str | None
    dollars: float | None
    seconds: float

    def check(self, only: Collection[str]) -> None:
        """Refuse options that contradict each other.

        Raises:
            UsageError: a model is needed and none is named, or one is named and not asked.
        """
        if not math.isfinite(self.seconds) or not math.isfinite(self.dollars or 0.0):
            raise UsageError("expected finite numbers of --seconds and --dollars")
        if self.model is None and (MODEL in only or self.dollars is not None):
            raise UsageError("expected a model that is asked: --model MODEL")
        if self.model is not None and only and MODEL not in only:
            raise UsageError(f"expected --only {MODEL}, too, as --model names one that is asked")

    @asynccontextmanager
    async def attacks(self) -> AsyncIterator[list[Attack]]:
        """The attack that asks it; its key is in no process that is started meanwhile.

        Raises:
            CredentialError: its key cannot be had.
            UsageError: there is no such model, or dollars are limited and its price is not known.
        """
        if self.model is None:
            yield []
            return
        from evogit.config.user_settings import load_user_settings
        from evogit.llm.registry import open_models

        models = open_models(load_user_settings(os.environ))
        try:
            model = models.get(self.model)
            if self.dollars is not None and model.price is None:
                raise UsageError(f"expected a known price of {self.model} to keep --dollars; say it in your settings")
            models.forget_keys()
            yield [attack_by(model, AuditAccount(self.dollars), self.seconds)]
        finally:
            await models.close()


async def _audit(
    terminal: Terminal, laboratory: Laboratory, attacks: list[Attack], out: Path | None, asked: _Asked
) -> list[Finding]:
    async with asked.attacks() as by_model, laboratory as lab:
        if terminal.live:
            lab.say = partial(terminal.note, style="dim")
        attacks = [*attacks, *by_model]
        if problem := task_problems(lab):
            raise RefusedError(f"{lab.task.name} cannot be audited: {problem}")
        done = []
        async for each in audited(lab, attacks):
            done.append(each)
            if terminal.live:
                terminal.note(f"{each.attack.name}: {_outcome(each)}", "dim")
        findings = [finding for each in done for finding in each.findings]
        folders = [str(folder) for folder in write(findings, out, lab)] if out else []
        if terminal.json:
            terminal.data(_report(lab, done, folders))
        else:
            terminal.show([*_head(lab, done), *_findings(findings, folders), *_foot(lab, done)])
    if not findings and (unasked := [each.unasked for each in done if each.unasked]):
        raise RefusedError(f"{unasked[0]}; its attacks were not tried to the end")
    return findings


def _outcome(each: Audited) -> str:
    if each.findings:
        return "found"
    if each.unasked:
        return "not asked"
    return "no time left" if each.late else "held"


def _list(terminal: Terminal, attacks: Sequence[AttackKind]) -> None:
    if terminal.json:
        records = [{"name": a.name, "family": a.family, "tries": a.tries, "remedy": a.remedy} for a in attacks]
        terminal.data({"schema": 1, "attacks": records})
        return
    rows: list[list[Text | str]] = [[Text(word, "dim") for word in ("attack", "family", "what the candidate does")]]
    rows += [[Text(attack.name, "bold"), attack.family, attack.tries] for attack in attacks]
    terminal.show(table(rows, "lll"))


# --- the report ---------------------------------------------------------------------------------------------------


def _head(lab: Laboratory, done: list[Audited]) -> list[Text]:
    score = lab.seed.evaluation.metrics[lab.task.primary.name]
    line = Text.assemble((lab.task.name, "bold"), f", judged: {lab.task.judged}; the seed has {lab.task.primary.name} ")
    line.append(f"{number(score, decimals(score))} on {lab.split}. {count(len(done), 'attack')}, ")
    line.append(f"{count(lab.tried, 'evaluation')}.")
    return [line, Text("")]


def _findings(findings: list[Finding], folders: list[str]) -> list[Text]:
    lines: list[Text] = []
    for place, finding in enumerate(findings):
        lines.append(Text.assemble((finding.attack.name, "bold red"), f"  {escape(finding.hit.what)}"))
        lines.append(_scores(finding))
        if finding.source:
            lines.append(Text.assemble(("  blame   ", "dim"), f"{finding.line}  ", (escape(finding.source), "cyan")))
        lines.append(Text.assemble(("  remedy  ", "dim"), finding.attack.remedy))
        if finding.hit.stricter:
            lines.append(Text("  the evaluator, as the model suggests", "dim"))
            lines += [Text(f"    {escape(line)}", "green") for line in _excerpt(finding.hit.stricter, "+-")]
            lines.append(Text("  the candidate", "dim"))
        if folders:
            lines.append(Text.assemble(("  files   ", "dim"), escape(folders[place])))
        else:
            lines += [Text(f"    {escape(line)}", "dim") for line in _excerpt(finding.diff)]
        lines.append(Text(""))
    return lines


def _scores(finding: Finding) -> Text:
    places = decimals(finding.value, finding.seed)
    value = "no score: the evaluation fails" if finding.value is None else number(finding.value, places)
    seed = number(finding.seed, places)
    if finding.value is not None and finding.seed is not None and value == seed and finding.value != finding.seed:
        value = f"{value} ({finding.value - finding.seed:+.2g})"
    return Text.assemble(("  score   ", "dim"), f"{value} on {finding.split}; the seed {seed}")


def _excerpt(diff: str, marks: str = "+") -> list[str]:
    """The lines that a patch adds, or those of other marks too, as many as a person wants to read at once."""
    added = [
        line for line in diff.splitlines() if line[:1] in marks and line.strip("+- ") and line[:3] not in ("+++", "---")
    ]
    cut = [f"... {count(len(added) - LINES, 'more line')}; --out DIR writes all of it"] if len(added) > LINES else []
    return [line[:120] for line in added[:LINES]] + cut


def _foot(lab: Laboratory, done: list[Audited]) -> list[Text]:
    lines = [Text(escape(note), "yellow") for note in lab.notes]
    late = [each.attack.name for each in done if each.late]
    unasked = [each for each in done if each.unasked]
    lines += [Text(escape(each.unasked), "yellow") for each in unasked]
    if late:
        lines.append(Text(f"no time for {', '.join(late)}; --seconds gives more", "yellow"))
    found = [each for each in done if each.findings]
    if found:
        return [*lines, Text(f"{len(found)} of {count(len(done), 'attack')} worked; docs/auditing.md says more", "red")]
    return [
        *lines,
        Text(f"no attack worked ({len(done) - len(late) - len(unasked)} tried)", "yellow" if unasked else "green"),
    ]


def _report(lab: Laboratory, done: list[Audited], folders: list[str]) -> dict[str, Any]:
    findings = [_record(finding) for each in done for finding in each.findings]
    for place, folder in enumerate(folders):
        findings[place]["folder"] = folder
    return {
        "schema": 1,
        "task": lab.task.name,
        "split": lab.split,
        "judged": lab.task.judged,
        "seed": dict(lab.seed.evaluation.metrics),
        "evaluations": lab.tried,
        "attacks": [{"name": each.attack.name, "outcome": _outcome(each)} for each in done],
        "notes": [*lab.notes, *(each.unasked for each in done if each.unasked)],
        "findings": findings,
    }


def _record(finding: Finding) -> dict[str, Any]:
    return {
        "attack": finding.attack.name,
        "family": finding.attack.family,
        "what": finding.hit.what,
        "remedy": finding.attack.remedy,
        "split": finding.split,
        "value": finding.value,
        "seed": finding.seed,
        "line": finding.line,
        "source": finding.source,
        "stricter": finding.hit.stricter,
        "files": sorted(finding.hit.candidate.files),
        "diff": finding.diff,
    }
