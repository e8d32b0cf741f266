"""Intervals and duels against what is known of them."""

from __future__ import annotations

import math
import random

import pytest

from evogit.stats.estimates import LEVEL, Estimate, Noise, duel, student


@pytest.mark.parametrize(
    ("freedom", "quantile"), [(1, 12.7062), (2, 4.3027), (3, 3.1824), (5, 2.5706), (10, 2.2281), (120, 1.9799)]
)
def test_quantiles_agree_with_the_tables(freedom: int, quantile: float) -> None:
    assert student(LEVEL, freedom) == pytest.approx(quantile, rel=0.003)


def test_the_variance_is_pooled_within_groups_of_unequal_size() -> None:
    noise = Noise()
    assert (noise.freedom, noise.margin(1)) == (0, math.inf)
    noise.learn("a", dict(enumerate([1.0, 3.0])))
    noise.learn("b", dict(enumerate([10.0, 11.0, 12.0])))
    noise.learn("c", dict(enumerate([5.0])))
    assert noise.freedom == 3
    assert noise.variance == pytest.approx((2 + 2) / 3)
    assert noise.margin(4) == pytest.approx(student(LEVEL, 3) * math.sqrt(4 / 3 / 4))
    assert noise.margin(2, 3) == pytest.approx(student(LEVEL, 3) * math.sqrt(4 / 3 * (1 / 2 + 1 / 3)))


def test_scores_that_never_differ_have_no_interval() -> None:
    noise = Noise()
    noise.learn("a", dict(enumerate([1.0, 1.0])))
    assert noise.margin(1) == 0.0


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    rng, held = random.Random(1), 0
    for _ in range(400):
        noise = Noise()
        draws = [[rng.gauss(0, 2) for _ in range(3)] for _ in range(4)]
        for name, values in enumerate(draws):
            noise.learn(str(name), dict(enumerate(values)))
        held += abs(Estimate.of(draws[0]).mean) <= noise.margin(3)
    assert 0.92 <= held / 400 <= 0.98


def test_a_duel_is_between_the_best_and_whom_it_leads_least_surely() -> None:
    field = {"a": Estimate(5.0, 4), "b": Estimate(4.5, 9), "c": Estimate(4.4, 1), "d": Estimate(1.0)}
    found = duel(field)
    assert found
    assert (found.leader, found.rival, found.next(field)) == ("a", "c", "c")
    assert duel({"a": Estimate(5.0)}) is None
