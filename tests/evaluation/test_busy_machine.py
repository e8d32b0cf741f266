"""Time limits on a machine whose cores others have: what is the machine's fault, and what the candidate's own."""

from __future__ import annotations

import asyncio

import pytest

from evogit.config import Task
from evogit.core import BaseFiles, Evaluation, Evidence, Files
from evogit.evaluation import evaluator as evaluators
from evogit.evaluation.evaluator import Door, Evaluator
from evogit.sandbox.archive import pack
from tests.conftest import MakeTask

EVALUATE = """\
import os, subprocess
from evogit import Case
from evogit.evaluation.program import CandidateFailedError

os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
BUSY = BUSY_TIMES

def evaluate(program, split):
    if split != "train":
        yield Case("gate", score=1)
        return
    HIDDEN = IS_HIDDEN
    burn = ["sh", "-c", "while :; do :; done"]  # each in a session, as the kernel shares cores out among these
    hogs = [subprocess.Popen(burn, start_new_session=True) for _ in range(14 if BUSY.pop(0) else 0)]
    yield Case("first", feedback="seen", score=1)
    try:
        yield Case("second", score=program.call("program:work", timeout="2s", cpu="2s").value)
    except CandidateFailedError:
        if not HIDDEN:
            raise
        yield Case("second", score=0)
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()
"""

SPINS = """\
import time

def work():
    while time.process_time() < 0.3:
        pass
    return 3
"""


@pytest.fixture(autouse=True)
def impatient(own_cache: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait for a calm machine, which this one may never be."""
    monkeypatch.setattr(evaluators, "LATER", (0.01, 0.01))


async def judge(task: Task, source: str) -> tuple[Evaluation, Evidence]:
    files = Files(pack({"program.py": source.encode()}), (), BaseFiles("seed", pack({})))
    async with Evaluator(task, provider="none", jobs=1) as evaluator:
        return await evaluator.evaluate("0" * 40, files, split="train")


def written(busy: list[bool], *, hidden: bool = False) -> str:
    return EVALUATE.replace("BUSY_TIMES", repr(busy)).replace("IS_HIDDEN", repr(hidden))


@pytest.mark.slow
@pytest.mark.parametrize("hidden", [False, True])
async def test_what_a_busy_machine_ended_is_evaluated_later(tiny: MakeTask, hidden: bool) -> None:
    task = tiny(evaluate=written([True, False, False], hidden=hidden))
    evaluation, evidence = await judge(task, SPINS)
    assert (evaluation.status, evaluation.starved, evaluation.metrics) == ("ok", False, {"score": 2.0})
    assert evaluation.cases.keys() == {"first", "second"}
    assert "waiting for a core" in evidence.log
    assert evaluation.cost.wall > evaluation.cost.call_wall + 2  # what the first try took was spent, too


@pytest.mark.slow
@pytest.mark.parametrize("hidden", [False, True])
async def test_what_a_busy_machine_ends_three_times_is_not_measured(tiny: MakeTask, hidden: bool) -> None:
    task = tiny(evaluate=written([True] * 3, hidden=hidden))
    evaluation, _ = await judge(task, SPINS)
    assert (evaluation.status, evaluation.counts) == ("not-measured", False), evaluation.reason
    assert (evaluation.metrics, evaluation.cases) == ({}, {})
    assert evaluation.key


@pytest.mark.slow
@pytest.mark.parametrize("busy", [False, True])
async def test_a_program_that_sleeps_times_out_by_itself(tiny: MakeTask, busy: bool) -> None:
    task = tiny(evaluate=written([busy, False, False]))
    evaluation, _ = await judge(task, "import time\n\ndef work():\n    time.sleep(60)\n")
    assert (evaluation.status, evaluation.starved, evaluation.counts) == ("timeout", False, True)


async def test_one_who_wants_to_be_alone_waits_for_those_inside_and_keeps_others_out() -> None:
    door, log = Door(), list[str]()

    async def enter(name: str, stay: asyncio.Event, *, alone: bool = False) -> None:
        async with door.entered(alone=alone):
            log.append(f"{name} in")
            await stay.wait()
        log.append(f"{name} out")

    ends = [asyncio.Event() for _ in range(4)]
    async with asyncio.TaskGroup() as group:
        for name, end, alone in zip("abcd", ends, (False, False, True, False), strict=True):
            group.create_task(enter(name, end, alone=alone))
            await asyncio.sleep(0)
        for end in (ends[1], ends[0], ends[2], ends[3]):
            await asyncio.sleep(0.01)
            end.set()
    assert log == ["a in", "b in", "b out", "a out", "c in", "c out", "d in", "d out"]
