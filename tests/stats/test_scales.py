"""Values whose noise grows with them: which scale is taken, and that intervals hold on it."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evogit.core import Evaluation, Metric
from evogit.history.scores import Scores
from evogit.history.standing import standing
from evogit.stats.scales import LINEAR, LOG, scale_of
from evogit.testing import RecordedHistory

TRUTH = {"seed": 1.0, "slow": 0.5, "good": 12.0, "best": 60.0, "late": 58.0}
"""A ratio to the seed, as of five candidates that were evaluated again."""

positive = st.floats(1e-6, 1e6)


def measured(metric: Metric, noise: Callable[[float], float], repeats: int = 4) -> Scores:
    """A run's evaluations, each value with noise of its own."""
    scores = Scores.of((metric,), "train", repeats)
    for name, value in TRUTH.items():
        for repeat in range(1 + repeats):
            scores.record(name, Evaluation(status="ok", metrics={"m": noise(value)}, repeat=repeat))
    return scores


def metric(**about: object) -> Metric:
    return Metric(name="m", direction="maximize", primary=True, **about)  # type: ignore[arg-type]


def groups(noise: Callable[[float], float], times: int = 4) -> list[Mapping[int, float]]:
    return [{repeat: noise(value) for repeat in range(times)} for value in TRUTH.values()]


def test_the_scale_is_declared_or_found_by_the_noise() -> None:
    rng = random.Random(1)
    relative = groups(lambda value: value * math.exp(rng.gauss(0, 0.05)))
    absolute = groups(lambda value: value + rng.gauss(0, 0.05))
    assert (scale_of("", relative), scale_of("", absolute)) == (LOG, LINEAR)
    assert (scale_of("linear", relative), scale_of("log", absolute)) == (LINEAR, LOG)
    assert scale_of("log", [*absolute, {0: 1.0, 1: -0.1}]) == LINEAR
    assert scale_of("", relative[:1]) == scale_of("", []) == LINEAR
    assert (metric(aggregate="geometric").noise, metric().noise, metric(scale="log").noise) == ("log", "", "log")


def test_the_interval_of_a_ratio_near_one_is_not_that_of_one_near_sixty() -> None:
    """The seed read `1.0 ± 5.8` where all that it ever measured lay between 0.96 and 1.03."""
    rng = random.Random(2)
    scores = measured(metric(aggregate="geometric"), lambda value: value * math.exp(rng.gauss(0, 0.03)))
    assert scores.scale == LOG
    for name in TRUTH:
        low, high = scores.interval(name) or (0.0, 0.0)
        value = scores.fitness(name) or 0.0
        assert 0.9 < low / value < value / value < high / value < 1.1
        assert high / value == pytest.approx(value / low)
        assert scores.margin(name) == pytest.approx((high - low) / 2)
        told = scores.evaluation(name)
        estimate = scores.estimate(name)
        assert told
        assert estimate
        assert told.metrics["m"] == pytest.approx(value)
        assert estimate.mean == pytest.approx(value)


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
@given(a=positive, b=positive, sd=st.floats(0.001, 0.5))
def test_what_is_beyond_noise_is_one_verdict_in_units_and_as_a_ratio(
    direction: str, a: float, b: float, sd: float
) -> None:
    scores = Scores.of((Metric(name="m", direction=direction, primary=True, scale="log"),), "train", 2)  # type: ignore[arg-type]
    for name, value, noise in (("a", a, (-sd, 0.0, sd)), ("b", b, (0.0, sd, -sd))):
        for repeat, away in enumerate(noise):
            scores.record(name, Evaluation(status="ok", metrics={"m": value * math.exp(away)}, repeat=repeat))
    above, beyond = scores.difference("a", "b")
    margin = scores.noise().margin(3, 3)
    apart = abs(math.log(a / b))
    if not math.isclose(apart, margin, rel_tol=1e-6):
        assert (abs(above) > beyond) == (apart > margin)
        better = (a > b) == (direction == "maximize")
        assert scores.surely_better("a", "b") == (apart > margin and better)
        low, high = scores.gain_ends("a", "b")
        assert low <= (above if direction == "maximize" else -above) <= high
        assert (low > 0) == scores.surely_better("a", "b")


def test_zero_among_ratios_is_compared_and_breaks_nothing() -> None:
    scores = Scores.of((metric(scale="log"),), "train", 2)
    for name, values in (("seed", (1.0, 1.1, 0.9)), ("dead", (0.0,)), ("better", (2.0, 2.1, 1.9)), ("gone", (0.0,))):
        for repeat, value in enumerate(values):
            scores.record(name, Evaluation(status="ok", metrics={"m": value}, repeat=repeat))
    assert scores.scale == LOG
    assert scores.surely_better("seed", "dead")
    assert not scores.surely_better("dead", "gone")
    assert scores.difference("better", "dead")[0] == pytest.approx(2.0, rel=0.01)
    assert all(math.isfinite(each.mean) for each in scores.field(TRUTH | {"better": 0, "dead": 0}).values())
    scores.record("dead", Evaluation(status="ok", metrics={"m": 0.1}, repeat=1))
    assert scores.scale == LINEAR
    assert scores.fitness("better") == pytest.approx(2.0)


def test_a_scale_that_turns_out_otherwise_moves_every_mean() -> None:
    scores = Scores.of((metric(),), "train", 2)
    for name, values in (("seed", (1.0, 1.2)), ("good", (2.0, 2.1)), ("best", (9.0, 8.8))):
        for repeat, value in enumerate(values):
            scores.record(name, Evaluation(status="ok", metrics={"m": value}, repeat=repeat))
    before = scores.scale, scores.fitness("seed")
    for repeat in range(2, 6):
        scores.record("best", Evaluation(status="ok", metrics={"m": 7.0 + repeat}, repeat=repeat))
        scores.record("seed", Evaluation(status="ok", metrics={"m": 1.0 + 0.04 * repeat}, repeat=repeat))
    assert before == (LINEAR, 1.1)
    assert scores.scale == LOG
    for name, values in scores.noise().measured.items():
        assert scores.fitness(name) == pytest.approx(LOG.mean(list(values.values())))
        estimate, told = scores.estimate(name), scores.evaluation(name)
        assert estimate
        assert told
        assert estimate.mean == told.metrics["m"] == scores.fitness(name)


@pytest.mark.slow
@pytest.mark.parametrize("declared", ["", "log"])
@pytest.mark.parametrize("shared", [0.0, 0.1])
def test_intervals_hold_where_noise_grows_with_the_value(declared: str, shared: float) -> None:
    """Over simulated runs: of each mean and of each ratio; with noise that repeats share, and without."""
    rng, runs = random.Random(f"{declared} {shared}"), 200
    held = {"mean": 0, "ratio": 0}
    for _ in range(runs):
        drawn = [rng.gauss(0, shared) for _ in range(5)]
        scores = Scores.of((metric(scale=declared),), "train", 4)
        for name, value in TRUTH.items():
            for repeat, effect in enumerate(drawn):
                seen = value * math.exp(effect + rng.gauss(0, 0.05))
                scores.record(name, Evaluation(status="ok", metrics={"m": seen}, repeat=repeat))
        for name, value in TRUTH.items():
            low, high = scores.interval(name) or (0.0, 0.0)
            held["mean"] += low <= value <= high
            low, high = scores.gain_ends(name, "seed")
            held["ratio"] += low <= (value - 1) * (scores.fitness("seed") or 0.0) <= high or name == "seed"
    assert all(each >= 0.92 * runs * len(TRUTH) for each in held.values()), held


def test_faces_tell_the_interval_of_a_ratio_as_it_is() -> None:
    story = RecordedHistory(repeats=2, metrics=(metric(scale="log"),))
    rng = random.Random(3)
    seed = story.add(1.0)
    best = story.add(40.0, seed)
    for commit, value in ((seed, 1.0), (best, 40.0)):
        for repeat in (1, 2):
            story.evaluate(commit, value * math.exp(rng.gauss(0, 0.1)), repeat=repeat)
    history = story.history
    known, score = standing(history, best), history.fitness(best)
    assert known.interval
    assert known.comparison
    low, high = known.interval
    assert known.interval == history.interval(best)
    assert (low < score < high, high / score) == (True, pytest.approx(score / low))
    assert known.comparison.interval == history.scores.gain_ends(best, seed)
    assert known.comparison.interval[0] > 0
    assert known.verdict == "better"
