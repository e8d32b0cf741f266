import random
from collections import Counter

import pytest

from benchmarks.judging import kendall, trial
from evogit.stats.bradley_terry import Comparisons, fit
from evogit.stats.pairs import gain, opponent, pairs


def told(*wins: str) -> Comparisons:
    tally = Comparisons()
    for winner, loser in wins:
        tally.add("me", winner, loser, 1.0)
    return tally


def test_near_and_unknown_ones_are_worth_a_verdict() -> None:
    tally = told(*["ab"] * 20, *["bc"] * 20)
    found = fit(tally)
    assert gain(found, "a", "b") > gain(found, "a", "c")
    assert gain(found, "a", "new") > gain(found, "a", "b")


def test_parts_that_nothing_links_are_linked_first() -> None:
    tally = told("ab", "cd", "cd", "cd")
    assert opponent(fit(tally), tally, "a", "abcd", random.Random(0)) in "cd"


def test_no_pair_comes_twice_in_a_row_and_nobody_meets_itself() -> None:
    tally, rng, last = Comparisons(), random.Random(0), set[str]()
    for _ in range(30):
        a, b = next(pairs(fit(tally), tally, "abc", rng, {frozenset(last)}))
        assert a != b
        assert {a, b} != last
        tally.add("me", a, b, 1.0)
        last = {a, b}
    assert opponent(fit(tally), tally, "a", "ab", rng, {frozenset("ab")}) is None


def test_a_round_names_everybody_once_and_either_side_first() -> None:
    tally, rng = Comparisons(), random.Random(0)
    found = list(pairs(fit(tally), tally, "abcdefgh", rng))
    assert sorted("".join(a + b for a, b in found)) == list("abcdefgh")
    sides = Counter(a < b for _ in range(20) for a, b in pairs(fit(tally), tally, "ab", rng))
    assert min(sides[True], sides[False]) > 3


@pytest.mark.slow
def test_the_planner_orders_fifty_better_than_chance() -> None:
    planned, _ = trial(1, planned=True, judges=5, liars=1, verdicts=1000)
    drawn, _ = trial(1, planned=False, judges=5, liars=1, verdicts=1000)
    assert planned > 0.85
    assert planned > drawn


def test_tau_counts_pairs_in_order() -> None:
    assert kendall("abc", "abc".index) == 1
    assert kendall("abc", "cba".index) == -1
    assert kendall("abc", lambda item: 0.0) == 0
