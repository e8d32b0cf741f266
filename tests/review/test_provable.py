"""What `init` and `check` say can be proven, against runs that are simulated with the same noise."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from evogit.config import Task
from evogit.core import Cost, Evaluation, Evidence
from evogit.history.scores import Scores
from evogit.review import checking
from evogit.review.checking import SeedEvaluation
from evogit.review.provable import provable, told_provable

MakeTask = Callable[..., Task]


def judged(values: list[float], wall: float = 10.0) -> SeedEvaluation:
    first, *again = (Evaluation(status="ok", metrics={"score": value}, cost=Cost(wall=wall)) for value in values)
    return SeedEvaluation(first, Evidence(), "none", "counted", tuple(again))


@pytest.fixture
def task(tiny: MakeTask) -> Task:
    return replace(tiny(), repeats=3)


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_a_gain_of_that_size_is_proven_in_half_of_all_runs(task: Task, scale: Any) -> None:
    """The seed's spread is known exactly here: two values that lie one standard deviation off the mean."""
    task = replace(task, metrics=(replace(task.primary, scale=scale),))
    sd, rng, proven, runs = 0.05, random.Random(1), 0, 400
    apart = sd / math.sqrt(2)
    values = [100 * math.exp(away) if scale == "log" else 100 * (1 + away) for away in (-apart, apart)]
    found = provable(task, judged(values))
    assert found
    assert found.share is not None
    for _ in range(runs):
        scores = Scores.of(task.metrics, "train", 3)
        for name, value in (("seed", 100.0), ("candidate", 100.0 * (1 + found.share))):
            for repeat in range(4):
                away = rng.gauss(0, sd)
                noisy = value * math.exp(away) if scale == "log" else value + 100 * away
                scores.record(name, Evaluation(status="ok", metrics={"score": noisy}, repeat=repeat))
        proven += scores.surely_better("candidate", "seed")
    assert 0.4 * runs < proven < 0.65 * runs


def test_advice_follows_the_pace_and_the_noise(task: Task) -> None:
    slow = provable(task, judged([100.0, 130.0, 90.0], wall=60.0))
    assert slow
    assert (slow.repeats, slow.hourly, slow.enough) == (3, 60.0, None)
    assert any("shorten" in sentence for sentence in told_provable(task, judged([100.0, 130.0, 90.0], wall=60.0)))
    quiet = provable(task, judged([100.0, 100.5, 99.8]))
    assert quiet
    assert quiet.share is not None
    assert quiet.share < 0.02
    assert quiet.enough == 2
    for repeats in (0, 1):
        none = provable(replace(task, repeats=repeats), judged([100.0, 100.5, 99.8]))
        assert none
        assert (none.gain, none.share, none.enough) == (None, None, 2), "one repeat proves nothing"
    zero = provable(task, judged([-1.0, 1.0]))
    assert zero
    assert zero.gain is not None
    assert zero.share is None
    assert provable(task, judged([1.0, 1.0, 1.0])) is None


EVALUATE = """\
import itertools
from evogit import Case

times = itertools.count()

def evaluate(program, split):
    yield Case("all", score=VALUE)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("value", "times"), [("1.0", 2), ("float(next(times))", 3)])
async def test_a_slow_seed_is_evaluated_a_third_time_only_if_two_differ(
    tiny: MakeTask, monkeypatch: pytest.MonkeyPatch, value: str, times: int
) -> None:
    monkeypatch.setattr(checking, "SLOW", 0.0)
    task = tiny(evaluate=EVALUATE.replace("VALUE", value))
    [found] = [each async for each in checking.judge_seed(task, ["train"], "bubblewrap", again=True)]
    assert (found.times, found.slow) == (times, True)
