"""Evaluations whose Docker container somebody stops: none is lost, and none counts twice."""

from __future__ import annotations

import pytest

from evogit.evaluation.evaluator import Evaluator
from evogit.sandbox.archive import pack
from tests.conftest import MakeTask

pytestmark = pytest.mark.docker

EVALUATE = """\
import os, subprocess
from pathlib import Path
from evogit import Case

def ours():
    label = f"label=evogit.process={os.getpid()}"
    return subprocess.run(["docker", "ps", "-q", "--filter", label], stdout=subprocess.PIPE).stdout.split()

def evaluate(program, split):
    yield Case("a", feedback="one", score=program.call("program:value").value)
    stops = Path(__file__).parent.parent / "stops"
    if stops.exists() and (left := int(stops.read_text())):
        stops.write_text(str(left - 1))
        subprocess.run(["docker", "stop", *ours()], stdout=subprocess.DEVNULL, check=True)
    yield Case("b", feedback="two", score=program.call("program:value").value)
"""

COUNTS = b"N = []\ndef value():\n    N.append(1)\n    return len(N)\n"


@pytest.mark.parametrize("stops", [1, 3])
async def test_a_container_that_is_stopped_costs_time_and_nothing_else(tiny: MakeTask, stops: int) -> None:
    task = tiny(evaluate=EVALUATE)

    async def judged() -> tuple[object, ...]:
        evaluation, evidence = await evaluator.evaluate("0" * 40, files, split="holdout")
        return evaluation.status, evaluation.metrics, evaluation.cases, evidence.feedback, evidence.log

    files = pack({"program.py": COUNTS})
    async with Evaluator(task, provider="docker", jobs=1) as evaluator:
        undisturbed = await judged()
        (task.folder / "stops").write_text(str(stops))
        *result, log = await judged()
        assert await judged() == undisturbed
    assert result == list(undisturbed[:-1])
    assert undisturbed[:2] == ("ok", {"score": 1.5})
    assert str(log).count("the sandbox was lost, and the evaluation began again") == stops
