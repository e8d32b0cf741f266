"""Noise that repeats share: how it is told from independent noise, and that intervals hold with either."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest

from evogit.core import Evaluation, Metric
from evogit.history.scores import Scores
from evogit.stats.two_way import f_tail, two_way

METRIC = Metric(name="m", direction="maximize", primary=True)

TIMES = {"seed": 5, "best": 5, "late": 3, "lucky": 2, "once": 1}
"""How often candidates of a run were evaluated, the best and what nearly was."""

TRUTH = {"seed": 0.0, "best": 2.0, "late": 1.5, "lucky": 1.0, "once": -1.0}


@pytest.mark.parametrize(
    ("ratio", "above", "below", "chance"),
    [(15.977, 4, 4, 0.01), (4.9646, 1, 10, 0.05), (8.0984, 3, 20, 0.001), (161.45, 1, 1, 0.05), (0.9, 50, 70, 0.652)],
)
def test_chances_agree_with_the_tables(ratio: float, above: int, below: int, chance: float) -> None:
    assert f_tail(ratio, above, below) == pytest.approx(chance, rel=0.01)


def test_effects_are_found_where_measurements_are_missing() -> None:
    effects = {0: 0.0, 1: 4.0, 2: -1.0, 5: 2.5}
    worth = {"a": 10.0, "b": -3.0, "c": 0.5}
    seen = {"a": (0, 1, 2, 5), "b": (0, 1), "c": (1, 2, 5)}
    table = {name: {repeat: worth[name] + effects[repeat] for repeat in seen[name]} for name in worth}
    found = two_way(table)
    assert found
    assert dict(found.effects) == pytest.approx(effects)
    assert (found.common, found.rounded, found.freedom) == (True, True, 9 - 3 - 4 + 1)
    table["b"][1] += 0.5
    odd = two_way(table)
    assert odd
    assert not odd.rounded


@pytest.mark.parametrize(
    "table",
    [
        {"a": {0: 1.0, 1: 2.0}},
        {"a": {0: 1.0, 1: 2.0}, "b": {2: 1.0, 3: 2.0}},
        {"a": {0: 1e200, 1: 2.0}, "b": {0: 1.0, 1: 2.0}},
    ],
)
def test_nothing_is_told_of_what_cannot_be_compared(table: dict[str, dict[int, float]]) -> None:
    assert two_way(table) is None


def scores(noise: Callable[[str, int], float]) -> Scores:
    """A run's evaluations, each with noise of its own."""
    told = Scores(METRIC, "train", repeats=4)
    for name, times in TIMES.items():
        for repeat in range(times):
            value = TRUTH[name] + noise(name, repeat)
            told.record(name, Evaluation(status="ok", metrics={"m": value}, repeat=repeat))
    return told


@pytest.mark.slow
@pytest.mark.parametrize(("common", "own"), [(0.0, 1.0), (1.0, 0.0), (3.0, 0.3), (1.0, 1.0), (0.3, 1.0)])
def test_intervals_hold_with_noise_of_either_kind_and_of_both(common: float, own: float) -> None:
    """Over simulated runs: of each difference, and of the score of what was evaluated five times."""
    rng, pairs, runs = random.Random(f"{common} {own}"), 0, 200
    held = {"difference": 0, "mean": 0}
    for _ in range(runs):
        shared = [rng.gauss(0, common) for _ in range(5)]
        told = scores(lambda name, repeat, shared=shared: shared[repeat] + rng.gauss(0, own))  # type: ignore[misc]
        for a, b in (("best", "seed"), ("best", "late"), ("late", "lucky"), ("best", "once")):
            above, margin = told.difference(a, b)
            pairs += 1
            held["difference"] += abs(above - TRUTH[a] + TRUTH[b]) <= margin + 1e-9
        low, high = told.interval("best") or (0.0, 0.0)
        held["mean"] += low <= TRUTH["best"] <= high
    assert 0.92 <= held["difference"] / pairs <= 1.0
    assert held["mean"] / runs >= 0.91  # more where draws differ: the score is as on one of those that tell how much
    if own == 0:
        assert held["difference"] == pairs


def test_independent_noise_is_seldom_taken_for_common_and_its_intervals_stay_as_they_were() -> None:
    rng, common = random.Random(1), 0
    for _ in range(300):
        told = scores(lambda name, repeat: rng.gauss(0, 1))
        noise = told.noise()
        common += noise.common is not None
        if noise.common is None:
            assert told.difference("best", "once")[1] == noise.margin(5, 1)
            assert told.fitness("best") == pytest.approx(getattr(told.estimate("best"), "mean", math.nan))
    assert common <= 3


def test_what_draws_the_same_inputs_is_told_apart_exactly_and_ranks_as_by_the_first_draw() -> None:
    draws = [5.0, -7.0, 1.0, 0.25, 2.0]
    told = scores(lambda name, repeat: draws[repeat])
    assert told.noise().common
    for name, worth in TRUTH.items():
        assert told.fitness(name) == pytest.approx(worth + draws[0])
    assert told.surely_better("best", "late")
    assert told.surely_better("seed", "once"), "which was evaluated once"
    above, margin = told.difference("late", "lucky")
    assert above == pytest.approx(0.5)
    assert margin < 1e-9
