"""The landscapes judge as they say: the known answer scores the best known value, and the seed its baseline."""

from __future__ import annotations

import runpy
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from evogit.config import Task, load_task
from evogit.core import Evaluation
from evogit.evaluation.evaluator import Evaluator
from evogit.evaluation.inputs import PUBLIC
from evogit.sandbox.archive import pack

FOLDER = Path(__file__).parents[2] / "benchmarks" / "landscapes"
NAMES = sorted(file.parent.name for file in FOLDER.glob("*/task.toml"))

pytestmark = pytest.mark.slow


def constants(values: dict[str, Any]) -> bytes:
    return "".join(f"{name} = {value}\n" for name, value in values.items()).encode()


def curve_fit(known: dict[str, Any]) -> dict[str, bytes]:
    terms = {"AMPLITUDE": 1.8, "FREQUENCY": 1.35, "PHASE": 0.6, "SLOPE": 0.45, "OFFSET": -0.5}
    code = (FOLDER / "curve_fit" / "seed" / "model.py").read_text()
    code = code.replace("AMPLITUDE *", "(AMPLITUDE - 0.12 * x) *").replace("SLOPE *", "(SLOPE - 0.06 * x) *")
    return {
        "model.py": b"\n".join(
            [code.split("\n\n\n")[0].encode(), constants(terms), code.encode()[code.index("\n\n\n") :]]
        )
    }


def secret_target(known: dict[str, Any]) -> dict[str, bytes]:
    secret = known["SECRET"]
    names = iter("ABCDEFGHIJKLMNOP")
    return {f"{file}.py": constants({next(names): value for value in secret[file]}) for file in secret}


def two_modules(known: dict[str, Any]) -> dict[str, bytes]:
    letters = {"left": "ABCDEFGH", "right": "STUVWXYZ"}
    return {
        f"{name}.py": constants(dict(zip(letters[name], machine.best, strict=True)))
        for name, machine in known["MACHINES"].items()
    }


def deceptive_trap(known: dict[str, Any]) -> dict[str, bytes]:
    return {"blocks.py": constants({f"B{number}": (1, 1, 1, 1) for number in range(8)})}


ANSWERS: dict[str, Callable[[dict[str, Any]], dict[str, bytes]]] = {
    "curve_fit": curve_fit,
    "secret_target": secret_target,
    "two_modules": two_modules,
    "deceptive_trap": deceptive_trap,
}


Judged = Callable[..., Awaitable[Evaluation]]


@asynccontextmanager
async def judge(name: str) -> AsyncIterator[tuple[Task, Judged]]:
    task = load_task(FOLDER / name)
    async with Evaluator(task, provider="bubblewrap", jobs=1, drawing=PUBLIC) as evaluator:

        async def judged(changes: dict[str, bytes], split: str = "train") -> Evaluation:
            files = pack({path: data for path, (data, _) in task.seed_files().items()} | changes)
            evaluation, _ = await evaluator.evaluate("0" * 40, files, split=split)
            return evaluation

        yield task, judged


def test_there_are_four() -> None:
    assert set(NAMES) == set(ANSWERS)


@pytest.mark.parametrize("name", NAMES)
async def test_the_seed_scores_its_baseline_and_the_known_answer_what_is_best_known(name: str) -> None:
    async with judge(name) as (task, judged):
        known, metric = ANSWERS[name](runpy.run_path(str(task.evaluator))), task.primary
        first, again, exact = await judged({}), await judged({}), await judged({}, "holdout")
        train, holdout = await judged(known), await judged(known, "holdout")
    assert first.metrics == pytest.approx({metric.name: metric.baseline}, abs=1e-6)
    assert (again.metrics, exact.status) == (first.metrics, "ok")
    assert train.metrics[metric.name] == pytest.approx(metric.best_known, abs=1e-9)
    assert holdout.metrics[metric.name] == pytest.approx(metric.best_known, abs=1e-9)


@pytest.mark.parametrize(
    ("name", "file", "answers"),
    [
        (
            "curve_fit",
            "model.py",
            {
                "def values(xs): return [0.0]": "expected 60 values, got 1",
                "def values(xs): return [1e300 for x in xs]": "expected values below a million",
                "def values(xs): return [x * 1e300 * 1e300 for x in xs]": "",
            },
        ),
        ("secret_target", "north.py", {"A = 1": "expected 4 dials in north.py, got 1", "A = B = C = D = '1'": "valid"}),
        (
            "two_modules",
            "left.py",
            {"A = 1": "expected 8 settings in left.py, got 1", "left = None; raise OSError": ""},
        ),
        (
            "deceptive_trap",
            "blocks.py",
            {"B0 = ()": "expected 8 blocks, got 1", "B0=B1=B2=B3=B4=B5=B6=B7 = (1,)": "expected 4 switches in B0"},
        ),
    ],
)
async def test_an_answer_of_another_form_gains_nothing(name: str, file: str, answers: dict[str, str]) -> None:
    async with judge(name) as (_, judged):
        for code, reason in answers.items():
            found = await judged({file: code.encode()})
            assert found.status in ("invalid", "crashed"), code
            assert not found.metrics
            assert reason in found.reason
