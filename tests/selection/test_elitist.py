"""What the default selector does over many draws, on histories of a few candidates."""

from __future__ import annotations

from collections import Counter

import pytest

from evogit.selection.elitist import DEFAULT, P_EXPLORE_MAX, Elitist, ElitistOptions

from .born import Born

ALONE = Elitist(ElitistOptions(merge=False))
AT_FIRST = 1 - DEFAULT.p_restart - DEFAULT.p_explore
"""The share of the best one among the parents, about, as long as little is judged."""


def share(born: Born, number: int, selector: Elitist | None = None, agent: str = "a1") -> float:
    return born.shares(selector or Elitist(), agent).get(number, 0.0)


def two_lines(a: float, b: float) -> Born:
    """Two children of the seed, which has the value 1, by two agents."""
    born = Born(("a1", "a2"))
    born.born(1.0, agent="seed")
    born.adopt("a1", born.born(a, 0, agent="a1"))
    born.adopt("a2", born.born(b, 0, agent="a2"))
    return born


def waiting(born: Born, times: int, parent: int) -> Born:
    for _ in range(times):
        born.born(0.0, parent)
    return born


@pytest.mark.parametrize(("value", "adopts"), [(2.5, True), (2.0, True), (1.9, False), (None, False)])
def test_a_child_that_is_no_worse_takes_the_place(value: float | None, adopts: bool) -> None:
    born = Born()
    born.born(1.0, agent="seed")
    born.adopt("a1", born.born(2.0, 0))
    child = born.born(value, 1)
    assert Elitist().adopts(born.history, "a1", born.ids[child]) is adopts


def test_a_pruned_child_takes_no_place() -> None:
    born = two_lines(2.0, 9.0)
    born.decide("prune", 2)
    assert not Elitist().adopts(born.history, "a1", born.ids[2])


def test_all_agents_breed_from_the_best_one() -> None:
    born = two_lines(2.0, 3.0)
    for agent in ("a1", "a2"):
        assert share(born, 2, agent=agent) == pytest.approx(AT_FIRST, abs=0.08)


def test_of_equals_that_live_the_youngest_breeds() -> None:
    born = two_lines(2.0, 2.0)
    assert born.history.best == born.ids[1]
    assert share(born, 2) == pytest.approx(AT_FIRST, abs=0.08)


def test_before_anything_was_judged_the_agents_own_individual_breeds() -> None:
    born = Born()
    born.candidate(agent="seed")
    born.adopt("a1", 0)
    assert {(move.operator, move.parents) for move in born.moves(Elitist())} == {("mutation", (born.ids[0],))}


def test_the_longer_nothing_helps_the_more_others_breed_and_the_bolder_the_changes() -> None:
    soon, later = waiting(two_lines(2.0, 3.0), 2, 2), waiting(two_lines(2.0, 3.0), 500, 2)
    first, then = soon.moves(ALONE), later.moves(ALONE)
    assert {move.boldness for move in first} == {1.0}
    assert 2 < max(move.boldness for move in then) <= DEFAULT.boldness_max
    assert share(soon, 2, ALONE) == pytest.approx(AT_FIRST, abs=0.08)
    assert share(later, 2, ALONE) == pytest.approx(1 - P_EXPLORE_MAX, abs=0.08)
    assert share(later, 1, ALONE) > 0.4, "it held the record once and has no children"


def test_a_promoted_candidate_is_favoured_until_it_is_pruned() -> None:
    born = two_lines(2.0, 3.0)
    other = born.born(1.0, 0)
    assert share(born, other) == 0
    born.decide("promote", other)
    assert share(born, other) == pytest.approx(0.25, abs=0.08)
    born.decide("prune", other)
    assert share(born, other) == 0


def test_without_merging_no_two_are_combined() -> None:
    found = two_lines(2.0, 3.0).moves(ALONE)
    assert {(move.operator, move.donor) for move in found} == {("mutation", None)}


def test_others_are_shown_now_and_then() -> None:
    born = two_lines(2.0, 1.0)
    donors = Counter(move.donor for move in born.moves(Elitist()) if move.parents == (born.ids[1],))
    assert donors.keys() == {None, born.ids[2]}
    assert donors[born.ids[2]] / donors.total() == pytest.approx(0.25, abs=0.05)


def test_nobody_is_shown_an_ancestor_or_one_that_is_better_in_no_case() -> None:
    born = Born(("a1", "a2", "a3"))
    born.born(1.0, agent="seed", cases={"x": 1.0, "y": 1.0})
    worse = born.born(1.0, 0, cases={"x": 1.0, "y": 1.0})
    best = born.born(3.0, 0, cases={"x": 5.0, "y": 1.0})
    other = born.born(1.1, worse, cases={"x": 0.2, "y": 2.0})
    for agent, number in (("a1", 0), ("a2", worse), ("a3", best)):
        born.adopt(agent, number)
    assert {getattr(move, "donor", None) for move in born.moves(Elitist())} == {None}
    born.adopt("a1", other)
    assert {move.donor for move in born.moves(Elitist()) if move.parents == (born.ids[best],)} == {
        None,
        born.ids[other],
    }


def test_the_seed_has_ever_fewer_further_children_and_none_where_a_person_brought_something_better() -> None:
    born = Born(("a1",))
    born.born(1.0, agent="seed")
    born.adopt("a1", born.born(3.0, 0))
    known = [share(born, 0, ALONE)]
    for judged in (DEFAULT.restart_horizon // 2, DEFAULT.restart_horizon):
        waiting(born, judged - len(born.ids) - 1, 1)
        born.adopt("a1", born.born(3.0 + judged, 1))
        known.append(share(born, 0, ALONE))
    assert known == [
        pytest.approx(DEFAULT.p_restart, abs=0.05),
        pytest.approx(DEFAULT.p_restart / 2, abs=0.05),
        pytest.approx(0, abs=0.02),
    ]
    with_person = Born()
    with_person.born(1.0, agent="seed")
    theirs = with_person.candidate(0, agent="human", operator="human")
    with_person.judge(theirs, 2.0)
    assert share(with_person, theirs) > 1 - 2 * DEFAULT.p_explore
