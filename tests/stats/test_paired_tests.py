from __future__ import annotations

import random
from itertools import product

import pytest

from evogit.stats.paired_tests import area, greater, holm, interval, normalised, not_inferior, tail

pytestmark = pytest.mark.slow


def rng(seed: int = 1) -> random.Random:
    return random.Random(seed)


def test_values_are_shares_of_the_way_from_the_seed_in_either_direction() -> None:
    assert normalised(3.0, seed=1.0, top=5.0) == 0.5
    assert normalised(3.0, seed=5.0, top=1.0) == 0.5
    assert normalised(6.0, seed=1.0, top=5.0) == 1.25
    assert normalised(7.0, seed=5.0, top=5.0) == 0.0, "there is no way to go"


def test_the_area_is_the_mean_over_all_evaluations() -> None:
    assert area([0.0, 0.5, 1.0], 3) == 0.5
    assert area([0.0, 1.0], 4) == 0.75, "what ends early stays where it ended"
    assert area([0.0, 1.0, 1.0], 2) == 0.5, "what went on is not counted"
    with pytest.raises(ValueError, match="at least one"):
        area([], 3)


def test_holm_by_hand() -> None:
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.005}) == pytest.approx(
        {"a": 0.03, "b": 0.06, "c": 0.06, "d": 0.02}
    )
    assert holm({"a": 0.6, "b": 0.9}) == {"a": 1.0, "b": 1.0}
    assert holm({}) == {}


def test_the_exact_test_counts_assignments_of_signs() -> None:
    assert greater([1.0, 2.0, 3.0], rng()) == 1 / 8
    assert greater([-1.0, -2.0, -3.0], rng()) == 1.0
    assert greater([3.0, -1.0, 2.0], rng()) == 2 / 8, "4 of 6: only +++ and +-+ reach it"
    assert greater([1.0, 0.0, 2.0, 3.0, 0.0], rng()) == 1 / 8, "differences of 0 say nothing"
    assert greater([0.0, 0.0], rng()) == 1.0
    assert greater([1.5, 2.5, 3.5], rng(), than=0.5) == 1 / 8


def test_the_random_test_agrees_with_the_exact_one() -> None:
    values = [0.3, -0.2, 0.5, 0.1, -0.4, 0.6, 0.2, 0.1, -0.1, 0.4, 0.2, 0.3, -0.3, 0.2, 0.1, -0.2]
    signs = product((1, -1), repeat=len(values))
    sums = [sum(s * abs(v) for s, v in zip(each, values, strict=True)) for each in signs]
    exact = sum(each >= sum(values) - 1e-9 for each in sums) / len(sums)
    assert greater(values, rng()) == pytest.approx(exact, abs=0.01)


def test_the_tests_are_right_about_chance() -> None:
    drawn = random.Random(7)
    false = sum(greater([drawn.gauss(0, 1) for _ in range(8)], rng(i)) <= 0.05 for i in range(400))
    assert false / 400 == pytest.approx(0.05, abs=0.03)
    assert greater([drawn.gauss(1, 1) for _ in range(13)], rng()) < 0.05


def test_no_worse_is_not_the_same_as_not_shown_to_be_worse() -> None:
    level = [0.001, -0.001] * 6
    assert not_inferior(level, rng()) < 0.01
    assert not_inferior([0.5, -0.5] * 6, rng()) > 0.05, "too uncertain"
    assert not_inferior([-0.1, -0.12] * 6, rng()) == 1.0, "surely worse"


@pytest.mark.slow
def test_bootstrap_intervals_cover_the_mean() -> None:
    drawn = random.Random(3)
    covered = 0
    for i in range(100):
        low, high = interval([drawn.gauss(2.0, 1.0) for _ in range(5)], rng(i))
        covered += low <= 2.0 <= high
    assert covered >= 88, "92 % of them with 5 values; plain percentiles 82 %"


def test_less_is_cut_off_for_few_pairs() -> None:
    assert [round(tail(n), 4) for n in (1, 2, 10, 40, 100_000)] == [0, 0, 0.0086, 0.0203, 0.025]


def test_equal_generators_give_equal_intervals() -> None:
    values = [0.1, 0.5, -0.2]
    assert interval(values, rng()) == interval(values, rng())
    low, high = interval([0.3, 0.3], rng())
    assert low == high == pytest.approx(0.3)
