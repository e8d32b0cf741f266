from __future__ import annotations

import random

import pytest

from evogit.agents import OperatorCredit
from evogit.agents.mutation.mix import FLOOR, Mix

WAYS = {"a": 0.6, "b": 0.3, "c": 0.1}


def test_what_pays_is_drawn_more_and_nothing_dies() -> None:
    mix = Mix(experience={"a": OperatorCredit(1000, 0), "b": OperatorCredit(1000, 10), "c": OperatorCredit(1000, 500)})
    a, b, c = mix.weights(WAYS)
    assert a + b + c == pytest.approx(1)
    assert a >= FLOOR * 0.6
    assert b >= FLOOR * 0.3
    assert c > 0.5


def test_steps_that_pay_are_taken_more_but_some_of_every_size_are() -> None:
    taught = Mix(
        experience={"perturb_number@0.01": OperatorCredit(90, 60), "perturb_number@0.1": OperatorCredit(90, 0)}
    )
    rng = random.Random(1)
    steps = [taught.step(rng)[1] for _ in range(500)]
    assert sum(0.01 <= step < 0.1 for step in steps) > 250
    assert sum(step >= 0.1 for step in steps) > 30
    assert all(0.001 <= step <= 1 for step in steps)


def test_boldness_makes_steps_larger_and_edits_more() -> None:
    shy, bold = (sum(Mix(boldness=boldness).step(random.Random(seed))[1] for seed in range(99)) for boldness in (1, 3))
    assert bold > 2 * shy
    assert Mix(boldness=3).one_more > Mix().one_more
    assert Mix(boldness=1e9).step(random.Random(1))[1] <= 10
