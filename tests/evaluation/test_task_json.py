"""What judges are handed, and what they check, without the libraries that the engine uses for it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from msgspec.structs import replace
from pydantic import ConfigDict, TypeAdapter

from evogit.adopt import find_task
from evogit.config import gallery
from evogit.config.values import EvaluationCommand, Gate, MetricReader, Pairwise
from evogit.evaluation.frames import described, task_of
from evogit.evaluation.return_types import plain_schema
from evogit.sandbox import Environment


@pytest.mark.parametrize("name", gallery())
def test_a_judge_has_the_task_of_its_engine(name: str) -> None:
    task = find_task(name)
    command = EvaluationCommand(
        text="make", reads={"score": MetricReader("json", "a"), "time": MetricReader("cpu")}, prepare="make seed"
    )
    other = replace(
        task,
        command=command,
        pairwise=Pairwise("short", ("m", "n")),
        gates={"smoke": Gate("score", ">", 1.0)},
        seed=None,
        environment=Environment(packages=("numpy",), setup=("true",), cpus=2.0),
    )
    for each in (task, other):
        handed = task_of(json.loads(json.dumps(described(each))))
        assert handed == each
        assert handed.evaluator_digest == each.evaluator_digest


@pytest.mark.parametrize(
    "returns",
    [float, int, str, bool, list[float], list[list[str]], tuple[int, float], tuple[float, ...], list[tuple[int, str]]],
)
def test_plain_types_are_checked_as_pydantic_would(returns: Any) -> None:
    assert plain_schema(returns) == TypeAdapter(returns, config=ConfigDict(strict=True)).core_schema


@pytest.mark.parametrize("returns", [list, tuple, dict[str, int], int | None, list[int | str], tuple[()], Any, complex])
def test_other_types_are_left_to_pydantic(returns: Any) -> None:
    assert plain_schema(returns) is None


def test_judges_start_without_what_is_slow_to_import() -> None:
    program = "import evogit.evaluation.evaluator_main, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not {"pydantic", "docker", "pygit2", "asyncio", "rich"} & set(done.stdout.split())
