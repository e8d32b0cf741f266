"""Evaluates a task's seed, as a run would, and says what is wrong with the task."""

from __future__ import annotations

import logging
import math
import re
import tempfile
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from evogit.config import REPOSITORY_FILE, TASK_FILE, Task
from evogit.core import Evaluation, Evidence
from evogit.engine.seed_check import check_tree
from evogit.engine.seed_files import seed_files
from evogit.evaluation.evaluator import Evaluator
from evogit.evaluation.inputs import PUBLIC
from evogit.repository import Repository
from evogit.sandbox import Files
from evogit.sandbox.archive import pack

logger = logging.getLogger(__name__)

CLOSE = 1e-4
"""Relative difference up to which a published value counts as the measured one."""

LIMITS = {
    "timeout": "timeout",
    "out-of-memory": "memory",
    "process-limit": "pids",
    "disk-limit": "disk",
    "output-limit": "output",
}
"""Status -> the key in [sandbox] that it is about."""


@dataclass(frozen=True, slots=True)
class Judged:
    """The seed's evaluation on one split; `timing` says how CPU is known."""

    evaluation: Evaluation
    evidence: Evidence
    provider: str
    timing: str


async def judge_seed(task: Task, splits: Sequence[str], provider: str) -> AsyncIterator[Judged]:
    """Evaluate the task's seed on each split in turn, on inputs that everybody can make, so that it repeats anywhere.

    Raises:
        EvoGitError: when the evaluator or the sandbox cannot be used at all.
    """
    with tempfile.TemporaryDirectory(prefix="evogit-check-") as folder:
        repository, tree = _seed(task, Path(folder) / "seed")
        files = Files(pack({}), (), await seed_files(repository, tree, task))
        async with Evaluator(task, provider=provider, jobs=1, drawing=PUBLIC) as evaluator:
            for split in splits:
                evaluation, evidence = await evaluator.evaluate(tree, files, split=split)
                yield Judged(evaluation, evidence, evaluator.provider, evaluator.timing)


def problems(task: Task, evaluations: Sequence[Evaluation]) -> list[str]:
    """What a run of this task would suffer from, one sentence each; empty when all is well."""
    found = [
        f"{each.split}: {f'the seed fails ({each.status})' if each.counts else 'the evaluator fails'}: {each.reason}"
        for each in evaluations
        if not each.ok
    ]
    for evaluation in evaluations:
        if evaluation.ok and evaluation.split == "train":
            found += _wrong_baselines(task, evaluation)
    return found


def advice(judged: Judged) -> str:
    """What to change where the seed fails: a sentence; empty where its reason says enough."""
    status, reason = judged.evaluation.status, judged.evaluation.reason
    said = f"{reason}\n{judged.evidence.log}\n{judged.evidence.stderr.decode(errors='replace')}"
    if status in LIMITS:
        return f"Give it more with {LIMITS[status]} in [sandbox], or evaluate by a command that needs less."
    if re.search(r"\bnot found\b|No module named|Cannot find (module|package)|exit code 127", said):
        return (
            "The sandbox seems to lack a program or a package: name it in [sandbox] packages, such as "
            '["pytest"] or with Docker ["apt:gcc"], or install it by prepare in [evaluator]. Nothing of your home is '
            "there, nor what Git ignores."
        )
    if "exit code" in reason:
        return (
            "It has only the files that are committed, no network, and a home that is empty. If it fails in a fresh "
            'clone too and agents are to fix that, let a metric read "exit" or "junit:FILE".'
        )
    if status == "invalid" and judged.evaluation.judged == "inside":
        return "Change how the number is read ([evaluator.read]) or what the command prints."
    return ""


def _wrong_baselines(task: Task, evaluation: Evaluation) -> list[str]:
    file = task.folder.name + "/" + (TASK_FILE if task.seed else REPOSITORY_FILE)
    return [
        f"metrics.{metric.name}.baseline is {metric.baseline:g}, but the seed measures "
        f"{evaluation.metrics[metric.name]:.6g} on train; write that into {file}"
        for metric in task.metrics
        if metric.baseline is not None
        and not math.isclose(metric.baseline, evaluation.metrics[metric.name], rel_tol=CLOSE)
    ]


def _seed(task: Task, scratch: Path) -> tuple[Repository, str]:
    """Where the seed is, and its tree id."""
    if task.seed is None:
        repository = Repository.discover(task.folder)
        tree = repository.tree_of(repository.head())
    else:
        repository = Repository.create(scratch)
        files = task.seed_files()
        contents: dict[str, bytes | None] = {path: content for path, (content, _) in files.items()}
        tree = repository.trees.write(None, contents, {path: mode for path, (_, mode) in files.items()})
    for note in check_tree(task, repository, tree):
        logger.warning("%s", note)
    return repository, tree
