"""Makes a task folder of a task of another system, evaluated from outside where the seed's score says that it works."""

from __future__ import annotations

import importlib.metadata
import math
import tempfile
from pathlib import Path

from msgspec import Struct

from evogit.adopt import ForeignTask
from evogit.config import Task, load_task
from evogit.core import EvoGitError
from evogit.review.checking import SeedEvaluation, judge_seed

CLOSE = 1e-9
"""Relative difference up to which two scores of the same seed are the same."""


class Adoption(Struct, frozen=True):
    """What came of it: the task as written, its seed's evaluation, and why it is not evaluated from outside."""

    task: Task
    judged: SeedEvaluation
    why_inside: str


async def adopt(found: ForeignTask, folder: Path, provider: str, *, outside: bool) -> Adoption:
    """Write the task to `folder`, evaluated from outside if the seed's score is the same there as beside the candidate.

    Without `outside` its evaluator is not run outside the sandbox, not even to compare. Raises EvoGitError: the task or
    the sandbox cannot be used at all.
    """
    with tempfile.TemporaryDirectory(prefix="evogit-adopt-") as scratch:
        inside = await _judged(found, Path(scratch) / "inside" / found.name, provider, outside=False)
        lacks = [name for name in found.requirements if not any(importlib.metadata.distributions(name=name))]
        why = found.why_inside if not found.outside else ""
        if found.outside and lacks:
            why = f"the evaluator needs packages that are not here (pip install {' '.join(lacks)})"
        if not why and not outside:
            why = "its evaluator would run outside the sandbox, with your rights; read it, then add --outside"
        kept = inside
        if not why:
            kept, why = await _tried(found, Path(scratch) / "outside" / found.name, provider, inside)
    found.write(folder, outside=not why)
    return Adoption(load_task(folder), kept, why)


async def _tried(found: ForeignTask, folder: Path, provider: str, inside: SeedEvaluation) -> tuple[SeedEvaluation, str]:
    try:
        outside = await _judged(found, folder, provider, outside=True)
    except EvoGitError as error:
        return inside, f"from outside, the evaluator fails: {str(error).splitlines()[0]}"
    if not outside.evaluation.ok:
        return inside, f"from outside, the seed fails ({outside.evaluation.status}: {outside.evaluation.reason})"
    metric = found.metric
    if not inside.evaluation.ok:
        return inside, "beside the candidate the seed fails, so that there is no score to compare with"
    here, there = outside.evaluation.metrics[metric], inside.evaluation.metrics[metric]
    if not _alike(here, there, inside, metric):
        return inside, f"from outside, the seed's {metric} is {here:g}, not {there:g} as beside it"
    return outside, ""


async def _judged(found: ForeignTask, folder: Path, provider: str, *, outside: bool) -> SeedEvaluation:
    found.write(folder, outside=outside)
    return [each async for each in judge_seed(load_task(folder), ["train"], provider, again=True)][0]


def _alike(here: float, there: float, inside: SeedEvaluation, metric: str) -> bool:
    """Whether two scores are the same, or apart by no more than a noisy one is from itself, on either side."""
    least, greatest = inside.spread(metric) or (there, there)
    room = greatest - least
    return math.isclose(here, there, rel_tol=CLOSE) or least - room <= here <= greatest + room
