"""A task whose seed is C++: it is compiled in the sandbox, the evaluator measures the tours, and it needs a model."""

from __future__ import annotations

from pathlib import Path

import pytest

from evogit.adopt import find_task
from evogit.core import UsageError
from evogit.repository import Repository
from evogit.run import Run, Settings
from evogit.testing import InMemoryBackend

from .conftest import Judged

TASK = "tsp_cpp"

pytestmark = pytest.mark.asyncio(loop_scope="module")


def program(main: str) -> dict[str, bytes]:
    return {"tour.cpp": f"#include <stdio.h>\nint main() {{ {main} }}\n".encode()}


@pytest.mark.slow
async def test_a_threshold_above_zero_makes_shorter_tours_than_descent(judged: Judged) -> None:
    seed = find_task(TASK).seed_files()["tour.cpp"][0]
    descent = await judged(split="lite")
    threshold = await judged(files={"tour.cpp": seed.replace(b"START = 0.0", b"START = 0.6")}, split="lite")
    assert descent.ok
    assert threshold.ok
    assert threshold.metrics["excess"] < descent.metrics["excess"] < 15


@pytest.mark.parametrize(
    ("main", "reason"),
    [
        ('for (int i = 0; i < 60; ++i) printf("0 ");', "u5-1: expected each of the 5 cities once, got [0, 0, 0, 0, 0]"),
        ("return 0;", "expected each of the 5 cities once, got []"),
        ('printf("excess -100");', "expected the numbers of cities, got 'excess -100'"),
        ("return 7;", "exit code 7"),
        ("oops", "tour.cpp does not compile"),
    ],
)
async def test_what_prints_no_tour_is_invalid(judged: Judged, main: str, reason: str) -> None:
    evaluation = await judged(files=program(main), split="lite")
    assert not evaluation.ok
    assert reason in evaluation.reason


async def test_a_run_without_a_model_is_refused(tmp_path: Path) -> None:
    task = find_task(TASK)
    run = Run(Repository.create(tmp_path / "runs"), task, "r", Settings(evaluations=2), backend=InMemoryBackend(task))
    with pytest.raises(UsageError, match=r"Python.*--model"):
        await run.evolve()
    assert run.history.seed is None
