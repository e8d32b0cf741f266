"""The judge of speed: right answers first, then seconds in pairs; what cannot be told apart is equal."""

from __future__ import annotations

import runpy

import pytest

from evogit.adopt import find_task

from .conftest import Judged

TASK = "speedup"

pytestmark = pytest.mark.asyncio(loop_scope="module")

FASTER = "WIDTH = 0.05\nROUNDS = 1"


@pytest.mark.slow
async def test_the_seed_is_as_fast_as_itself_and_two_numbers_make_it_faster(judged: Judged) -> None:
    same, faster = await judged(split="lite"), await judged(FASTER, split="lite")
    assert same.metrics == {"speedup": 1.0}
    assert faster.metrics["speedup"] > 2


@pytest.mark.slow
async def test_neither_a_false_clock_nor_answers_that_were_kept_gain(judged: Judged) -> None:
    code = """
import json, os, time
time.process_time = time.perf_counter = time.monotonic = time.time = lambda: 0.0
time.process_time_ns = time.perf_counter_ns = time.monotonic_ns = lambda: 0
seed = neighbours
def neighbours(points, radius):
    if os.path.exists("kept"):
        with open("kept") as file:
            return json.load(file)
    answer = seed(points, radius)
    with open("kept", "w") as file:
        json.dump(answer, file)
    return answer
"""
    evaluation = await judged(code, split="lite")
    assert evaluation.ok
    assert evaluation.metrics["speedup"] <= 1  # a file that was found would have the answer for other points


async def test_ratios_count_only_where_they_differ_by_more_than_chance() -> None:
    task = find_task(TASK)
    assert task.evaluator
    measuring = runpy.run_path(str(task.evaluator.parent / "measuring.py"))
    interval, decided, speedup = measuring["interval"], measuring["decided"], measuring["speedup"]
    even = [0.9, 1.3, 0.8, 1.2, 1.1, 1.0, 0.7, 1.4]
    assert interval(even) == (0.7, 1.4)
    assert interval(even[:4]) == (0.0, float("inf"))
    assert interval([*even, *even[:4]]) == (0.8, 1.3)  # of twelve, the second from either end
    assert not decided(even)
    assert speedup(even, [5.0] * 8) == 1
    assert not decided([1.01] * 12)
    assert speedup([2.0] * 7 + [9.0], [3.0] * 8) == 2
    assert speedup([20.0] * 8, [1.1] * 8) == 1.1  # work that was left to others takes as long
    assert speedup([0.5] * 8, [0.5] * 8) == 0.5
