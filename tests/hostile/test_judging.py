"""Hostile candidates before real judges: what they answer is never a fault of the evaluator, which would be free."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest
from msgspec.structs import replace

from evogit.config import Task, load_task
from evogit.content import content
from evogit.core import Evaluation
from evogit.evaluation.evaluator import Evaluator
from evogit.sandbox.archive import pack
from tests.clock import PATIENCE

pytestmark = pytest.mark.slow

MILLIONS = ["[''] * 750_000 + [[]] * 450_000", "{str(i): 1 for i in range(450_000)}"]


async def test_a_million_mistakes_take_about_as_long_as_one() -> None:
    one = await cost_of("[''] + [0] * 1_500_000")
    for answer in MILLIONS:
        assert await cost_of(answer) < 8 * one  # twenty times, and gigabytes, when every mistake is told


async def cost_of(answer: str) -> float:
    """The CPU of an evaluator that refuses a program's answer, and of the program, in seconds."""
    began = cpu_of_children()
    async with Evaluator(patient("bin_packing"), provider="bubblewrap", jobs=1) as evaluator:
        evaluation = await judged(evaluator, f"def pack(items, capacity): return {answer}")
    assert evaluation.status == "invalid", evaluation.reason
    assert "does not fit" in evaluation.reason
    return cpu_of_children() - began


def patient(name: str) -> Task:
    """A task of the gallery that waits for its programs on a busy machine."""
    task = load_task(content("tasks") / name)
    return replace(task, limits=replace(task.limits, wall=PATIENCE, cpu=PATIENCE))


def cpu_of_children() -> float:
    """Of those that were waited for, and of those that are there, with what they have waited for: proc(5)."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    there = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    stats = [Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[11:15] for child in there]
    return used.ru_utime + used.ru_stime + sum(map(int, sum(stats, []))) / os.sysconf("SC_CLK_TCK")


async def judged(evaluator: Evaluator, source: str) -> Evaluation:
    files = pack({"packing.py": source.encode()})
    return (await evaluator.evaluate("0" * 40, files, split="lite"))[0]
