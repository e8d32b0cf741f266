"""Which of several models is asked: by its numbers, and by what a history says of them."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from evogit.agents import ModelCredit
from evogit.agents.model_agent import choose, scores
from evogit.breeding.credit import MEMORY, WINDOW, merits
from evogit.events import FailedProposal, Proposed, Spent
from tests.selection.born import Born


def merit(moves: float, gain: float, dollars: float | None = 0.0, tokens: float = 100.0) -> ModelCredit:
    return ModelCredit(moves=moves, gain=gain, tokens=tokens, dollars=dollars)


def asked(born: Born, model: str, value: float | None, parent: int = 0, dollars: float | None = 0.5) -> None:
    """A move that asked a model; without a value no candidate came of it."""
    move = born.history.moves
    known: dict[str, Any] = {"engine": "e", "move": move, "agent": "a1"}
    born.append(Spent(model=model, prompt=80, completion=20, dollars=dollars, **known))
    if value is None:
        born.append(FailedProposal(parents=(born.ids[parent],), reason="babble", **known))
        return
    commit = f"{move:040x}"
    born.ids.append(commit)
    born.append(Proposed(candidate=commit, tree=commit, parents=(born.ids[parent],), operator="mutation", **known))
    born.judge(len(born.ids) - 1, value)


def test_who_is_unknown_comes_first_and_equals_are_drawn() -> None:
    rng, known = random.Random(1), {"a": merit(5, 0.9)}
    assert {choose(["a", "b", "c"], lambda: known, rng) for _ in range(30)} == {"b", "c"}
    assert scores(["a", "b"], known)["b"].total == math.inf


def test_gain_doubt_and_cost_all_count() -> None:
    def first(**known: ModelCredit) -> str:
        return choose(list(known), lambda: known, random.Random(1))

    assert first(a=merit(8, 0.1), b=merit(8, 0.4)) == "b"
    assert first(a=merit(2, 0.1), b=merit(14, 0.4)) == "a"
    assert first(a=merit(8, 0.3, dollars=0.01), b=merit(8, 0.35, dollars=0.1)) == "a"
    assert first(a=merit(8, 0.3, tokens=10), b=merit(8, 0.35, dollars=None, tokens=1000)) == "a"
    assert first(a=merit(8, 0.1, dollars=0.05), b=merit(8, 0.9, dollars=0.1)) == "b"


def test_the_numbers_are_those_of_the_formula() -> None:
    told = scores(["a", "b"], {"a": merit(4, 0.25, dollars=0.1), "b": merit(6, 0.5, dollars=0.4)})
    assert told["b"].doubt == pytest.approx(math.sqrt(math.log(10) / 6 / 4))
    assert (told["a"].cheap, told["b"].cheap) == (1.0, pytest.approx(0.25))
    assert told["b"].total == pytest.approx(0.9 * (0.5 + told["b"].doubt) + 0.1 * 0.25)


def test_gains_are_over_parent_and_seed_shares_of_the_largest_and_older_ones_count_less() -> None:
    born = Born()
    born.born(1.0)
    asked(born, "big", 3.0)  # 2 over the seed, the largest
    asked(born, "small", None)
    asked(born, "small", 0.5)
    asked(born, "small", 2.0, parent=1)  # better than the seed, worse than its parent
    asked(born, "big", 4.0, parent=1)  # 1 over its parent
    known = merits(born.history)
    half, ages = math.expm1(0.5) / math.expm1(1), MEMORY**4 + 1
    assert known["big"].gain == pytest.approx((MEMORY**4 + half) / ages)
    assert (known["big"].moves, known["small"].gain) == (pytest.approx(ages), 0.0)
    assert (known["big"].dollars, known["big"].tokens) == (pytest.approx(0.5), pytest.approx(100.0))
    asked(born, "big", 4.0, parent=1, dollars=None)
    assert merits(born.history)["big"].dollars is None


def test_what_is_not_judged_or_not_known_yet_is_left_out() -> None:
    born = Born()
    born.born(1.0)
    asked(born, "big", 3.0)
    asked(born, "small", 2.0)
    born.append(Spent(engine="e", move=9, agent="a1", model="new", prompt=1))
    assert set(merits(born.history)) == {"big", "small"}
    born.history.attempts.horizon = 1
    assert set(merits(born.history)) == {"big"}
    born.history.attempts.horizon = None
    for _ in range(WINDOW):
        asked(born, "big", None)
    assert set(merits(born.history)) == {"big"}


def test_a_model_that_pays_is_asked_more_and_one_that_stops_paying_less() -> None:
    rng, born = random.Random(3), Born()
    born.born(0.0)
    shares = []
    for good in ("a", "b"):
        picked = []
        for _ in range(60):
            model = choose(["a", "b"], lambda: merits(born.history), rng)
            picked.append(model)
            asked(born, model, 1.0 if model == good else 0.0)
        shares.append(picked[-30:].count("a") / 30)
    assert shares[0] > 0.7
    assert shares[1] < 0.3
