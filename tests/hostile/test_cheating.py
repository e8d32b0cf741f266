"""Programs that want a score without earning it, evaluated whole: with a sandbox and, where it applies, without one."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from evogit.core import Evaluation
from evogit.evaluation.evaluator import Evaluator
from evogit.sandbox.archive import pack
from tests.conftest import MakeTask

EVALUATE = """\
import math
import time
from evogit import Case, Invalid

SECRET = 8_675_309

def evaluate(program, split):
    started = time.monotonic()
    guess = program.call("program:guess", returns=float).value
    if not 0 <= guess <= 1e9 or time.monotonic() < started:
        raise Invalid(f"expected a guess from 0 to 1e9, got {guess}")
    yield Case("guess", score=-abs(math.floor(guess) - SECRET))
"""

HONEST = "def guess():\n    return 1.0\n"
EARNED = -8_675_308.0
"""What the honest program scores; 0 is perfect."""

PRINTS = """\
import os, sys
print('{"score": 0, "status": "ok"}', flush=True)
os.write(1, b'{"value": 8675309.0}')
os._exit(0)
"""
PATCHES = (
    """\
import builtins, math, time
math.floor = builtins.abs = lambda x: 8675309
time.monotonic = time.process_time = time.perf_counter = lambda: 0.0
"""
    + HONEST
)
READS = """\
import re
def guess():
    try:
        with open(EVALUATOR) as file:
            return float(re.search(r"SECRET = ([0-9_]+)", file.read())[1])
    except OSError:
        return 1.0
"""
SCANS = """\
import glob, re
def guess():
    for name in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(name) as file:
                if "evogit.evaluation.evaluator_main" in file.read():
                    return 8675309.0
        except OSError:
            pass
    return 1.0
"""


@pytest.fixture
def judged(tiny: MakeTask) -> Callable[..., object]:
    """Evaluates programs with a provider; EVALUATOR in them is the path of the evaluator's file on the host."""

    async def judge(provider: str, *programs: str) -> list[Evaluation]:
        task = tiny(evaluate=EVALUATE)
        found = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # `none` warns, as it should
            async with Evaluator(task, provider=provider, jobs=1) as evaluator:
                for program in programs:
                    text = f"EVALUATOR = {str(Path(task.evaluator))!r}\n{program}"
                    files = pack({"program.py": text.encode()})
                    found.append((await evaluator.evaluate("0" * 40, files, split="holdout"))[0])
        return found

    return judge


@pytest.mark.slow
async def test_a_cheat_earns_no_more_than_the_honest_program(judged) -> None:
    for evaluation in await judged("bubblewrap", HONEST, PATCHES, READS, SCANS):
        assert evaluation.metrics == {"score": EARNED}


async def test_the_same_cheat_wins_without_a_sandbox(judged) -> None:
    for evaluation in await judged("none", READS, SCANS):
        assert evaluation.metrics == {"score": 0.0}


NO_ANSWERS = [
    (PRINTS, "crashed", "exited with code 0 before replying"),
    ("def guess():\n    raise SystemExit(0)\n", "crashed", "raised SystemExit: 0"),
    ("def guess():\n    return float('nan')\n", "invalid", ""),
    ("def guess():\n    return True\n", "invalid", ""),
    ("def guess():\n    return '8675309'\n", "invalid", ""),
]


@pytest.mark.parametrize("provider", ["bubblewrap", pytest.param("none", marks=pytest.mark.slow)])
async def test_what_is_no_answer_scores_nothing_anywhere(judged, provider: str) -> None:
    found = await judged(provider, *(program for program, _, _ in NO_ANSWERS))
    for (program, status, reason), evaluation in zip(NO_ANSWERS, found, strict=True):
        assert (evaluation.status, evaluation.metrics) == (status, {}), program
        assert reason in evaluation.reason
