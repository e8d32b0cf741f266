"""Ratios from measurements side by side, whatever the machine does between two pairs or within one."""

from __future__ import annotations

import math
import random

import pytest

from evogit.stats.side_by_side import LEAST_FREEDOM, Pairs

WORTHS = {"seed": 0.0, "a": -0.1, "b": 0.05, "c": -0.2}
RUNS = 300


def measured(rng: random.Random, spread: float, odd: int = 0) -> Pairs:
    """Pairs of a chain, each candidate beside the one before it, and `odd` ones in which the machine changed."""
    pairs, names = Pairs(), list(WORTHS)
    for reference, candidate in zip(names, names[1:], strict=False):
        for repeat in range(4):
            shift = math.log(2) if odd > 0 and repeat == 2 else 0.0
            odd -= bool(shift)
            pairs.add(
                candidate, repeat, reference, WORTHS[candidate] - WORTHS[reference] + rng.gauss(0, spread) + shift
            )
    return pairs


def test_what_was_measured_exactly_is_known_exactly_through_others_too() -> None:
    fit = measured(random.Random(1), 0.0).fit
    assert fit.difference("c", "seed")[0] == pytest.approx(-0.2)
    assert fit.difference("c", "seed")[1] == pytest.approx(0.0, abs=1e-6)


def test_nothing_is_known_of_what_was_never_measured_beside_the_other() -> None:
    pairs = measured(random.Random(1), 0.01)
    pairs.add("x", 1, "y", 0.5)
    assert pairs.fit.difference("x", "seed") == (0.0, math.inf)
    assert not pairs.fit.joined("x", "seed")


def test_a_single_pair_tells_no_interval() -> None:
    pairs = Pairs()
    pairs.add("a", 1, "seed", -0.1)
    assert pairs.fit.difference("a", "seed") == (pytest.approx(-0.1), math.inf)


@pytest.mark.parametrize("odd", [0, 1, 2])
def test_intervals_hold_the_true_ratio(odd: int) -> None:
    held = 0
    for seed in range(RUNS):
        above, half = measured(random.Random(seed), 0.03, odd).fit.difference("c", "seed")
        held += abs(above - WORTHS["c"]) <= half
    assert held / RUNS >= 0.92


def test_a_pair_in_which_the_machine_changed_is_left_out_once_enough_others_are_known() -> None:
    fit = measured(random.Random(3), 0.01, odd=1).fit
    assert len(fit.taken) == 11
    assert fit.freedom >= LEAST_FREEDOM
    assert fit.difference("c", "seed")[0] == pytest.approx(-0.2, abs=0.05)
