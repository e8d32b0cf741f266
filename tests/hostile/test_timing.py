"""Programs that want to be called fast: what one session kept, or could foresee, is no help to the next measurement."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from evogit.core import Evaluation
from evogit.evaluation.evaluator import Evaluator
from evogit.sandbox.archive import pack
from tests.conftest import TOML, MakeTask

MEASURES = """\
from evogit import Case

def evaluate(program, split):
    found = [program.measure("program:work", [7], warmup=[1], returns=list[int]).value for _ in range(3)]
    with program.anew() as life:
        life.run(["sh", "-c", "echo kept > kept"])
        inside = life.call("program:work", [7], returns=list[int]).value
        life.call("program:work", [7], fresh=True)
    found.append(program.call("program:work", [7], returns=list[int]).value)
    print(found, inside)
    yield Case("one", score=max(sum(each) for each in found) - sum(inside))
"""
"""0 calls before this one, or one of warming up; no file of another life."""

KEEPS = """\
import os, subprocess, sys, tempfile
from functools import lru_cache

calls = []

def work(n):
    calls.append(n)
    places = [os.getcwd(), tempfile.gettempdir(), os.environ["HOME"], "/dev/shm"]
    files = 0
    for place in places:
        files += sum(name.startswith("kept") for name in os.listdir(place))
        open(f"{place}/kept-{os.getpid()}-{len(calls)}", "w").close()
    if os.fork() == 0:
        os.setsid()
        import time
        time.sleep(100)
    others = len([name for name in os.listdir("/proc") if name.isdigit()])
    return [len(calls) - 1 if n == 7 and calls.count(7) > 1 else 0, files if len(calls) == 1 else 0, 0 * others]
"""


@pytest.fixture
def judge(tiny: MakeTask) -> Callable[..., object]:
    async def judged(program: str, evaluate: str, provider: str) -> tuple[Evaluation, str]:
        task = tiny(evaluate=evaluate)
        async with Evaluator(task, provider=provider, jobs=1) as evaluator:
            evaluation, evidence = await evaluator.evaluate(
                "0" * 40, pack({"program.py": program.encode()}), split="holdout"
            )
        return evaluation, evidence.log + evidence.stderr.decode()

    return judged


PROVIDERS = ["bubblewrap", pytest.param("docker", marks=pytest.mark.docker)]


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_nothing_that_a_life_keeps_is_there_in_the_next_one(judge, provider: str) -> None:
    evaluation, said = await judge(KEEPS, MEASURES, provider)
    assert evaluation.ok, evaluation.reason + said
    found, inside = json.loads(f"[{said.strip().splitlines()[0].replace('] [', '], [')}]")
    assert found == [[0, 0, 0]] * 4
    assert inside == [0, 1, 0]


TIMES = """\
from evogit import Case

def evaluate(program, split):
    def took():
        return program.measure("program:work", [200_000], warmup=[1]).cpu
    yield Case("one", score=took() / min(took() for _ in range(3)))
"""

REMEMBERS = """\
import functools, os, json

@functools.lru_cache
def work(n):
    if os.path.exists("../tmp/known"):
        return 1
    open("../tmp/known", "w").close() if n > 1 else None
    return sum(i * i for i in range(n))
"""


@pytest.mark.slow
async def test_what_is_remembered_makes_no_measurement_faster(judge) -> None:
    evaluation, said = await judge(REMEMBERS, TIMES, "bubblewrap")
    assert 0 < evaluation.metrics["score"] < 5, said  # calls that remember take a hundredth


SPENDS = "import time\ndef work(n):\n    print('said', n)\n    time.sleep(0.3)\n"
ENDLESS = """\
from evogit import Case

def evaluate(program, split):
    while True:
        program.measure("program:work", [1])
    yield Case("one", score=1)
"""


@pytest.mark.slow
async def test_lives_count_together(judge, tiny: MakeTask) -> None:
    toml = f'{TOML.partition("[sandbox]")[0]}[sandbox]\ntotal = "2s"\ntimeout = "2s"\n'
    task = tiny("total", evaluate=ENDLESS, toml=toml)
    async with Evaluator(task, provider="bubblewrap", jobs=1) as evaluator:
        evaluation, evidence = await evaluator.evaluate("0" * 40, pack({"program.py": SPENDS.encode()}), split="train")
    assert (evaluation.status, evaluation.reason) == ("timeout", "took 2 s in all")
    assert evaluation.cost.wall >= 2
    assert evidence.stdout.count(b"said 1") >= 2
