"""What every selector that draws from all valid candidates does, and what each of them prefers."""

from __future__ import annotations

import random

import pytest

from evogit.selection import Selector
from evogit.selection.map_elites import Axis, MapElites
from evogit.selection.pareto import Pareto
from evogit.selection.registry import open_selector
from evogit.selection.weighted import Weighted, WeightedOptions

from .born import Born

pytestmark = pytest.mark.slow

KINDS = ["weighted", "islands:count=1", "pareto:over=cases", "pareto:over=metrics", "grid"]


def other(history, commit):  # type: ignore[no-untyped-def]
    evaluation = history.evaluation(commit)
    return evaluation.metrics["n"] if evaluation else None


def opened(text: str) -> Selector:
    return open_selector("map-elites:n=0..10/5" if text == "grid" else text, {"n": other})


def two_lines(a: float, b: float) -> Born:
    """A seed of 1 with two children, each better on a case of its own."""
    born = Born(["a1", "a2"])
    born.born(1.0, cases={"x": 0, "y": 0}, other=9)
    born.born(a, 0, cases={"x": a, "y": 0}, other=5)
    born.born(b, 0, cases={"x": 0, "y": b}, other=1, agent="a2")
    return born


@pytest.mark.parametrize("kind", KINDS)
def test_parents_are_valid_and_not_pruned(kind: str) -> None:
    born, selector = two_lines(2.0, 3.0), opened(kind)
    born.born(None, 1)
    assert 3 not in born.shares(selector)
    born.candidate(2)
    assert 4 not in born.shares(selector), "nobody knows yet"
    born.decide("prune", 2)
    assert born.shares(selector, "a2").keys() <= {0, 1}
    born.decide("prune", 0, 1)
    assert born.shares(selector, "a2", 20) == {0: 1.0}, "the individual of the agent, at last the seed"


@pytest.mark.parametrize("kind", KINDS)
def test_evaluations_under_an_earlier_task_rank_nobody(kind: str) -> None:
    born, selector = two_lines(2.0, 3.0), opened(kind)
    born.moves(selector, times=5)
    born.change_task()
    assert born.shares(selector, times=20) == {0: 1.0}
    born.judge(1, 5.0, cases={"x": 1, "y": 2}, other=5)
    assert born.shares(selector, times=20) == {1: 1.0}


@pytest.mark.parametrize("kind", KINDS)
def test_a_promoted_candidate_is_favoured(kind: str) -> None:
    born, selector = two_lines(2.0, 3.0), opened(kind)
    before = born.shares(selector).get(0, 0.0)
    born.decide("promote", 0)
    assert born.shares(selector)[0] == pytest.approx(0.25 + 0.75 * before, abs=0.06)


@pytest.mark.parametrize("kind", KINDS)
def test_what_helped_on_another_line_is_merged_and_others_are_donors(kind: str) -> None:
    born, selector = two_lines(2.0, 2.5), opened(kind)
    moves = born.moves(selector)
    merges = {move.parents for move in moves if move.operator == "merge"}
    assert merges
    assert merges <= {(born.ids[2], born.ids[1]), (born.ids[1], born.ids[2])}
    assert {move.donor for move in moves if move.operator == "mutation"} > {None}


def test_a_child_is_adopted_when_it_is_fitter_than_all_its_parents() -> None:
    born, selector = two_lines(2.0, 3.0), Weighted()
    both = [born.born(value, 1, 2) for value in (2.5, 3.0, 3.5, None)]
    assert [selector.adopts(born.history, "a1", born.ids[each]) for each in both] == [False, False, True, False]
    born.decide("prune", both[2])
    assert not selector.adopts(born.history, "a1", born.ids[both[2]])


# --- what each prefers ------------------------------------------------------------------------------------------


def star(*values: float, **known: object) -> Born:
    """A seed of the first value, and children of it."""
    born = Born()
    for number, value in enumerate(values):
        born.born(value, *([0] if number else []), **known)
    return born


def test_weighted_draws_the_fit_and_the_childless() -> None:
    born = star(1.0, 2.0, 3.0, 4.0, 5.0)
    shares = born.shares(Weighted())
    assert shares[4] == pytest.approx(shares[3], abs=0.06)
    assert shares[3] > 0.3 > shares[2] > 0.1
    assert shares.get(1, 0) + shares.get(0, 0) < 0.05
    for _ in range(3):
        born.born(None, 4)
    assert born.shares(Weighted())[4] < shares[4] / 2


def test_weighted_draws_from_an_archive_of_the_fittest() -> None:
    assert star(*range(10)).shares(Weighted(WeightedOptions(archive=2))).keys() == {8, 9}


@pytest.mark.parametrize("values", [(2.0, 2.0, 2.0), (-1e308, 0.0, 1e308), (1.0, 1.0, 1.0, 1.0, 9.0)])
def test_weighted_knows_what_to_do_with_equal_and_with_huge_values(values: tuple[float, ...]) -> None:
    shares = star(*values).shares(Weighted())
    assert max(shares, key=shares.__getitem__) == (
        len(values) - 1 if len(set(values)) > 1 else max(shares, key=shares.get)
    )


def test_over_cases_each_case_is_led_by_its_best_and_of_equals_by_the_fittest() -> None:
    born = Born()
    born.born(1.0, cases={"x": 1, "y": 0, "z": 0})
    born.born(2.0, 0, cases={"x": 1, "y": 1, "z": 0})
    born.born(3.0, 0, cases={"x": 0, "y": 0, "z": 3})
    born.born(2.0, 0, cases={"x": 0, "y": 1, "z": 1})
    shares = born.shares(Pareto(), times=3000)
    assert shares == pytest.approx({1: 1 / 3 + 1 / 6, 2: 1 / 3, 3: 1 / 6}, abs=0.04)


def test_over_metrics_the_unbeaten_and_the_lonely_win() -> None:
    born = Born()
    for value, cost in [(0, 9), (1, 1), (2, 2), (2.1, 2.1), (5, 5)]:
        born.born(float(value), *([0] if value else []), other=float(cost))
    shares = born.shares(Pareto(), times=3000)
    assert shares[0] < 0.07, "only when it meets itself"
    assert shares[1] + shares[4] > 1.7 * (shares[2] + shares[3])


def test_each_kind_keeps_its_place_beside_a_fitter_one() -> None:
    grid = MapElites([(other, Axis(0.0, 10.0, 5))])
    born = star(1.0, 5.0, 9.0, other=3.0)
    born.born(0.5, 0, other=99.0)
    assert born.shares(grid) == pytest.approx({2: 0.5, 3: 0.5}, abs=0.05)
    born.decide("prune", 2)
    assert born.shares(grid).keys() == {1, 3}, "the next one of its kind takes the place"


@pytest.mark.parametrize(
    ("value", "part"), [(-9.0, 0), (0.0, 0), (1.99, 0), (2.0, 1), (9.99, 4), (10.0, 4), (1e308, 4)]
)
def test_an_axis_has_equal_parts_and_open_ends(value: float, part: int) -> None:
    assert Axis.parse("n", "0..10/5").part(value) == part


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_move_of_all_is_to_change_the_seed(kind: str) -> None:
    born = Born()
    born.candidate()
    move = opened(kind).next_move(born.history, "a1", random.Random(1))
    assert (move.operator, move.parents, move.donor) == ("mutation", (born.ids[0],), None)
