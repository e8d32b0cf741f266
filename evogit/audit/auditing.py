"""Tries all attacks on a task, and says what they found."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import aclosing
from pathlib import Path

from msgspec import Struct

from evogit.audit.attack import Attack, Finding, Hit
from evogit.audit.attacks import ATTACKS
from evogit.audit.laboratory import Laboratory, NotAskedError, NoTimeError, speaks_of_time
from evogit.config import Task
from evogit.contained import find_text, has_file
from evogit.core import UsageError

QUICK = ("memo", "kept-on-disk", "hard-coded", "memo-inside")
"""The attacks on timed tasks that `evogit check` tries, too."""
MODEL = "model"
"""The attack that asks a model, and its family."""


class Audited(Struct, frozen=True):
    """An attack that was tried, and what it found.

    `late` when there was no time for it, or not for all of it; `unasked` why a model could not be asked to the end.
    """

    attack: Attack
    findings: tuple[Finding, ...]
    late: bool = False
    unasked: str = ""


def chosen(names: Collection[str]) -> list[Attack]:
    """The attacks of these names or families, all of them where none is named; `MODEL` names none of these.

    Raises:
        UsageError: there is none of such a name.
    """
    known = {MODEL, *(name for attack in ATTACKS for name in (attack.name, attack.family))}
    if unknown := [name for name in names if name not in known]:
        raise UsageError(f"expected attacks or families of `evogit audit --list`, got {', '.join(unknown)}")
    return [attack for attack in ATTACKS if not names or attack.name in names or attack.family in names]


async def audited(lab: Laboratory, attacks: Collection[Attack]) -> AsyncIterator[Audited]:
    """Try these attacks one after the other, each as far as the time reaches."""
    for attack in attacks:
        hits: list[Hit] = []
        late, unasked = False, ""
        try:
            async with aclosing(attack.search(lab)) as search:  # type: ignore[type-var]
                async for hit in search:
                    hits.append(hit)
        except NoTimeError:
            late = True
        except NotAskedError as error:
            unasked = str(error)
        lab.found += [hit.what for hit in hits]
        yield Audited(attack, tuple(_finding(lab, attack, hit) for hit in hits), late, unasked)


def _finding(lab: Laboratory, attack: Attack, hit: Hit) -> Finding:
    metric = lab.task.primary.name
    value, seed = (each.evaluation.metrics.get(metric) for each in (hit.trial, hit.seed or lab.seed))
    line, source = source_of(lab.task, hit.line)
    return Finding(attack, hit, hit.split or lab.split, seed, value, line, source, hit.candidate.diff(lab.files))


def source_of(task: Task, line: str) -> tuple[str, str]:
    """A line `file:number` of the evaluator's folder, or of the task's, as the task's; and its text, if it is there."""
    name, _, number = line.rpartition(":")
    for folder in (task.evaluator_folder, task.folder):
        if name and has_file(folder, name):
            lines = find_text(folder, name).splitlines()
            text = lines[int(number) - 1].strip() if 0 < int(number) <= len(lines) else ""
            return f"{(folder / name).relative_to(task.folder)}:{number}", text
    return line, ""


def write(findings: Collection[Finding], folder: Path, lab: Laboratory) -> Iterator[Path]:
    """Write each finding's candidate, all its files and its patch, to a folder of the attack's name."""
    for number, finding in enumerate(findings):
        names = [other.attack.name for other in list(findings)[:number]]
        name = finding.attack.name + (
            f"-{names.count(finding.attack.name) + 1}" if finding.attack.name in names else ""
        )
        for path, content in {**lab.files, **finding.hit.candidate.files}.items():
            if lab.task.is_visible(path):
                (folder / name / "seed" / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / name / "seed" / path).write_bytes(content)
        (folder / name / "candidate.diff").write_text(finding.diff, encoding="utf-8")
        if finding.hit.stricter:
            (folder / name / "evaluator.diff").write_text(finding.hit.stricter, encoding="utf-8")
        yield folder / name


async def gamed(task: Task, provider: str, seconds: float) -> list[Finding]:
    """How a score that is made of times can be had by a seed that remembers or predicts, as far as `seconds` reach.

    Raises:
        EvoGitError: when the evaluator or the sandbox cannot be used at all.
    """
    if not speaks_of_time(task) or task.judged == "pairs":
        return []
    async with Laboratory(task, provider, seconds=seconds) as lab:
        if task_problems(lab):
            return []
        return [finding async for each in audited(lab, chosen(QUICK)) for finding in each.findings]


def task_problems(lab: Laboratory) -> str:
    """Why nothing can be audited; empty when it can."""
    if lab.task.judged == "pairs":
        return "pairs of candidates are compared by people or models; there is no score to forge"
    if not lab.seed.evaluation.ok:
        return f"the seed fails ({lab.seed.evaluation.status}): {lab.seed.evaluation.reason}; see `evogit check`"
    return ""
