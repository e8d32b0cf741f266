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

CIRCLES = {
    "[(0.5, 0.5, 0.5)] * 2 + [(5e-324, 0.5, 0.0)] * (n - 2)": "circles 0 and 1 overlap by 1",
    "[(0.5, 5e-324, 5e-324)] * n": "circles 0 and 1 overlap by 9.88e-324",
    "[(0.25, 0.5, 0.25), (0.75, 0.5, 0.25000000000000006)] + [(0, 0, 0)] * (n - 2)": "out of the square by 5.55e-17",
    "[(0.5, 0.5, -5e-324)] * n": "numbers from 0 to 1",
    "[(0.5, 0.5, 1e308)] * n": "numbers from 0 to 1",
    "[(0.5, 0.5, True)] * n": "valid number, got True",
    "[(0.5, 0.5, 10**400)] * n": "finite number, got 1000",
    "[(0.5, 0.5, 10**4299)] * n": "finite number, got 1000",
}
BINS = {
    "[10**4299] * len(items)": "item 0 is in bin 1000",
    "[-0.0] * len(items)": "valid integer, got -0.0",
    "[True] * len(items)": "valid integer, got True",
    "[0] * len(items)": "bin 0 holds",
}
ONLINE = {
    "10**4299": "goes into bin 1000",
    "-1": "goes into bin -1",
    "False": "valid integer, got False",
}
TASKS = {
    "circle_packing": ("def pack(n): return {}", CIRCLES),
    "bin_packing": ("def pack(items, capacity): return {}", BINS),
    "online_bin_packing": ("def start(capacity): pass\ndef place(size): return {}", ONLINE),
}
MILLIONS = ["[''] * 750_000 + [[]] * 450_000", "{str(i): 1 for i in range(450_000)}"]


@pytest.mark.parametrize("name", TASKS)
async def test_answers_that_earn_nothing(name: str) -> None:
    source, answers = TASKS[name]
    async with Evaluator(load_task(content("tasks") / name), provider="bubblewrap", jobs=1) as evaluator:
        for answer, reason in answers.items():
            evaluation = await judged(evaluator, source.format(answer))
            assert (evaluation.status, evaluation.metrics) == ("invalid", {}), evaluation.reason
            assert reason in evaluation.reason


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
