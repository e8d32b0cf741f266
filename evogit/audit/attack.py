"""Attacks, their hits, and what an audit reports of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Literal

from msgspec import Struct

from evogit.audit.candidate import AttackCandidate
from evogit.audit.laboratory import Laboratory, NotAskedError, NoTimeError, WatchedEvaluation
from evogit.config import Task
from evogit.contained import find_text, has_file

MODEL = "model"  # the name of the attack that asks a model
Outcome = Literal["found", "held", "does not apply", "not asked", "no time left"]


class Hit(Struct, frozen=True):
    """An attack that worked: one sentence, the candidate, its evaluation, and the line to blame if there is one.

    On another split than the audited one, `split` names it and `seed` is the seed's evaluation there. `stricter` is a
    patch of the evaluator that would refuse the candidate, if a model suggests one.
    """

    what: str
    candidate: AttackCandidate
    trial: WatchedEvaluation
    line: str = ""
    split: str = ""
    seed: WatchedEvaluation | None = None
    stricter: str = ""


class Attack(Struct, frozen=True):
    """A way to score without earning it: its name, what a candidate does, and the remedy.

    `search` evaluates candidates and yields those that gain. Only the model's attack has none until there is a model.
    One that `is_last` needs that others were evaluated before it.
    """

    name: str
    tries: str
    remedy: str
    search: Callable[[Laboratory], AsyncIterator[Hit]] | None = None
    is_last: bool = False


class Finding(Struct, frozen=True):
    """A hit as a user sees it: values of the primary metric, the blamed line with its text, and the changed files."""

    attack: str
    what: str
    remedy: str
    split: str
    value: float | None
    seed: float | None
    line: str
    source: str
    stricter: str
    files: Mapping[str, bytes]
    diff: str


class Audited(Struct, frozen=True):
    """The result of one attack; `unasked` is the reason why a model could not be asked to the end."""

    attack: Attack
    findings: tuple[Finding, ...]
    outcome: Outcome
    unasked: str = ""


async def audited(lab: Laboratory, attacks: Collection[Attack]) -> AsyncIterator[Audited]:
    """Try these attacks one after the other, each as far as the time reaches."""
    for attack in attacks:
        assert attack.search
        hits: list[Hit] = []
        before, unasked, late = lab.requests, "", False
        try:
            async with aclosing(attack.search(lab)) as search:  # type: ignore[type-var]
                async for hit in search:
                    hits.append(hit)
        except NoTimeError:
            late = True
        except NotAskedError as error:
            unasked = str(error)
        lab.hits += [hit.what for hit in hits]
        outcome: Outcome = "held"
        if hits:
            outcome = "found"
        elif unasked:
            outcome = "not asked"
        elif late:
            outcome = "no time left"
        elif lab.requests == before and attack.name != MODEL:
            outcome = "does not apply"
        yield Audited(attack, tuple(_finding(lab, attack, hit) for hit in hits), outcome, unasked)


def _finding(lab: Laboratory, attack: Attack, hit: Hit) -> Finding:
    value, seed = (trial.evaluation.metrics.get(lab.task.primary.name) for trial in (hit.trial, hit.seed or lab.seed))
    line, source = source_of(lab.task, hit.line)
    return Finding(
        attack.name,
        hit.what,
        attack.remedy,
        hit.split or lab.split,
        value,
        seed,
        line,
        source,
        hit.stricter,
        hit.candidate.files,
        hit.candidate.diff(lab.files),
    )


def source_of(task: Task, line: str) -> tuple[str, str]:
    """Return a line `file:number` of the evaluator's or the task's folder as the task's, and its text."""
    name, _, number = line.rpartition(":")
    for folder in (task.evaluator_folder, task.folder):
        if name and has_file(folder, name):
            lines = find_text(folder, name).splitlines()
            text = lines[int(number) - 1].strip() if 0 < int(number) <= len(lines) else ""
            return f"{(folder / name).relative_to(task.folder)}:{number}", text
    return line, ""


def write(findings: Sequence[Finding], folder: Path, lab: Laboratory) -> Iterator[Path]:
    """Write the files and patches of each finding to a folder of the attack's name."""
    for number, finding in enumerate(findings):
        earlier = [other.attack for other in findings[:number]].count(finding.attack)
        target = folder / (f"{finding.attack}-{earlier + 1}" if earlier else finding.attack)
        for path, content in {**lab.files, **finding.files}.items():
            if lab.task.is_visible(path):
                (target / "seed" / path).parent.mkdir(parents=True, exist_ok=True)
                (target / "seed" / path).write_bytes(content)
        (target / "candidate.diff").write_text(finding.diff, encoding="utf-8")
        if finding.stricter:
            (target / "evaluator.diff").write_text(finding.stricter, encoding="utf-8")
        yield target
