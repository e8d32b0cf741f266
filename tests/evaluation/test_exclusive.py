"""Tasks with exclusive = true: the candidate's core is its own, and evaluations take turns."""

from __future__ import annotations

import asyncio
import os

import pytest
from msgspec.structs import replace

from evogit.config import Task
from evogit.core import BaseFiles, Files, SandboxError
from evogit.evaluation.evaluator import Evaluator
from evogit.sandbox.archive import pack
from tests.conftest import MakeTask

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("own_cache"),
    pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="this machine has one core"),
]

EVALUATE = """\
import os, time
from pathlib import Path
from evogit import Case

def evaluate(program, split, seed):
    told = {
        "judge": os.sched_getaffinity(0),
        "program": program.call("program:cores", returns=list[int]).value,
        "seed": seed.call("program:cores", returns=list[int]).value,
        "command": map(int, program.run(["python3", "-c", RUN]).stdout.split()),
    }
    for name, cores in told.items():
        yield Case(name, feedback=" ".join(map(str, sorted(cores))), score=1)

RUN = "import os; print(*os.sched_getaffinity(0))"
"""

PROGRAM = b"import os\ndef cores(): return sorted(os.sched_getaffinity(0))\n"

TURNS = """\
import time
from pathlib import Path
from evogit import Case

def evaluate(program, split):
    log = Path(__file__).parent.parent / "log"
    for word in ("begin", "end"):
        with log.open("a") as file:
            print(word, file=file)
        time.sleep(0.05)
    yield Case("a", score=1)

def prepare(program):
    assert program.call("program:cores").value
"""


def exclusive(task: Task) -> Task:
    return replace(task, environment=replace(task.environment, exclusive=True))


@pytest.mark.parametrize("provider", ["bubblewrap", "none", pytest.param("docker", marks=pytest.mark.docker)])
async def test_the_candidate_has_a_core_of_its_own(tiny: MakeTask, provider: str) -> None:
    cores = os.sched_getaffinity(0)
    core = max(cores)
    files = Files(pack({}), (), BaseFiles("seed", pack({"program.py": PROGRAM})))
    async with Evaluator(exclusive(tiny(evaluate=EVALUATE)), provider=provider, jobs=4) as evaluator:
        kept = os.sched_getaffinity(0)
        evaluation, evidence = await evaluator.evaluate("0" * 40, files, split="holdout")
    assert evaluation.reason == ""
    apart = " ".join(map(str, sorted(kept)))
    assert evidence.feedback == {"judge": apart, "program": str(core), "seed": str(core), "command": str(core)}
    assert core not in kept
    assert os.sched_getaffinity(0) == cores, "given back in the end"


@pytest.mark.slow
async def test_evaluations_of_two_engines_take_turns(tiny: MakeTask) -> None:
    task, cores = exclusive(tiny(evaluate=TURNS)), os.sched_getaffinity(0)
    files = Files(pack({}), (), BaseFiles("seed", pack({"program.py": PROGRAM})))

    async with Evaluator(task, provider="bubblewrap", jobs=4) as one:
        os.sched_setaffinity(0, cores)  # an engine in another process is not kept off by this one
        async with Evaluator(task, provider="bubblewrap", jobs=4) as other:
            four = (each.evaluate(tree * 40, files, split="holdout") for tree in "01" for each in (one, other))
            results = await asyncio.gather(*four)
    assert [evaluation.reason for evaluation, _ in results] == [""] * 4
    assert (task.folder / "log").read_text().split() == ["begin", "end"] * 4


async def test_one_core_is_not_enough(tiny: MakeTask) -> None:
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        with pytest.raises(SandboxError, match="exclusive = true needs a core for the candidate and another one"):
            async with Evaluator(exclusive(tiny()), provider="bubblewrap", jobs=1):
                pass
    finally:
        os.sched_setaffinity(0, cores)
