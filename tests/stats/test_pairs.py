import itertools
import random
import statistics
from collections import Counter

import pytest

from evogit.stats.bradley_terry import Comparisons, Fit, fit, gain, opponent, pairs


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


def kendall(truth: list[str], fitted: Fit) -> float:
    """Kendall's tau (1938) of the strengths with the true order, worst first."""
    values = [fitted.strength(item) for item in truth]
    return statistics.fmean((b > a) - (b < a) for a, b in itertools.combinations(values, 2))


def ranking(seed: int, *, planned: bool, verdicts: int = 1000) -> float:
    """Tau of fifty candidates after verdicts of five judges, each right with 0.8 but a liar with 0.2."""
    rng, tally, asked, last = random.Random(seed), Comparisons(), 0, frozenset[str]()
    items = [f"c{number}" for number in range(50)]
    truth = rng.sample(items, len(items))
    while asked < verdicts:
        batch = [(a, b) for a, b in (rng.sample(items, 2) for _ in range(25))]
        if planned:
            batch = list(pairs(fit(tally), tally, items, rng, {last}))[:25]
        for a, b in batch:
            judge = rng.randrange(5)
            right = rng.random() < (0.2 if judge == 0 else 0.8)
            tally.add(f"judge {judge}", a, b, float((truth.index(a) > truth.index(b)) == right))
            last = frozenset((a, b))
        asked += len(batch)
    return kendall(truth, fit(tally))


@pytest.mark.slow
def test_the_planner_orders_fifty_better_than_chance() -> None:
    planned = ranking(1, planned=True)
    assert planned > 0.85
    assert planned > ranking(1, planned=False)
