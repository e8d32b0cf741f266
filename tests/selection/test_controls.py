"""What the controls do: each the one thing that it is named after."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from evogit.selection import Move, Selector
from evogit.selection.controls import BestOfN, OnePlusLambda, RandomParent, Sequential

from .born import Born


def lines() -> Born:
    """The seed 1, by a1 its child 2, by a2 its child 3 and then one that failed."""
    born = Born(("a1", "a2"))
    born.born(1.0, agent="seed")
    born.adopt("a1", born.born(2.0, 0, agent="a1"))
    born.adopt("a2", born.born(3.0, 0, agent="a2"))
    born.born(None, 2, agent="a2")
    return born


def parents(born: Born, selector: Selector, agent: str = "a1") -> Counter[int]:
    rng = random.Random(1)
    moves: list[Move] = [selector.next_move(born.history, agent, rng) for _ in range(400)]
    assert {(move.operator, len(move.parents), move.donor) for move in moves} == {("mutation", 1, None)}
    return Counter(born.ids.index(move.parents[0]) for move in moves)


def test_sampling_mutates_nothing_but_the_seed() -> None:
    assert parents(lines(), BestOfN()).keys() == {0}


@pytest.mark.parametrize("kind", [BestOfN, Sequential, OnePlusLambda, RandomParent])
def test_nobody_adopts_what_a_person_pruned(kind: type[Selector]) -> None:
    born = lines()
    child = born.born(9.0, 0, agent="a1")
    assert kind().adopts(born.history, "a1", born.ids[child])
    born.decide("prune", child)
    assert not kind().adopts(born.history, "a1", born.ids[child])


def test_the_sequential_one_keeps_its_own_line() -> None:
    born = lines()
    assert parents(born, Sequential(), "a1").keys() == {1}
    assert parents(born, Sequential(), "a2").keys() == {2}
    equal = born.born(2.0, 1, agent="a1")
    assert Sequential().adopts(born.history, "a1", born.ids[equal])
    assert not Sequential().adopts(born.history, "a2", born.ids[equal])
    assert not Sequential().adopts(born.history, "a2", born.ids[3])


def test_all_agents_share_the_best_one_and_of_equals_the_latest() -> None:
    born = lines()
    assert parents(born, OnePlusLambda(), "a1").keys() == {2}
    equal = born.born(3.0, 2, agent="a1")
    assert OnePlusLambda().adopts(born.history, "a1", born.ids[equal])
    born.adopt("a1", equal)
    assert parents(born, OnePlusLambda(), "a2").keys() == {equal}
    worse = born.born(2.9, 2, agent="a1")
    assert not OnePlusLambda().adopts(born.history, "a1", born.ids[worse])


def test_random_parents_are_all_the_valid_ones_alike() -> None:
    born = lines()
    found = parents(born, RandomParent())
    assert found.keys() == {0, 1, 2}
    assert min(found.values()) > 100
    born.decide("prune", 2)
    assert parents(born, RandomParent()).keys() == {0, 1}
