"""Who is known on which island, and when."""

from __future__ import annotations

import pytest

from evogit.selection.islands import Islands, IslandsOptions

from .born import Born

pytestmark = pytest.mark.slow


def archipelago() -> Born:
    """A seed, a child by each of two agents on islands of their own, and one that a person added."""
    born = Born(["a1", "a2"])
    born.born(1.0, agent="seed")
    born.born(2.0, 0, agent="a1")
    born.born(3.0, 0, agent="a2")
    born.born(1.5, 0, agent="human")
    return born


def islands(**options: int) -> Islands:
    return Islands(IslandsOptions(count=2, **options))


def everybody(born: Born, selector: Islands, agent: str) -> set[int]:
    """Return those that are known on an agent's island, where alone its parents come from."""
    known = {born.ids.index(commit) for _, _, commit in selector.known(born.history, agent)}
    assert set(born.shares(selector, agent, 50)) <= (known or {0})
    return known


def test_an_island_knows_its_own_and_what_nobody_there_bred() -> None:
    born, selector = archipelago(), islands()
    assert everybody(born, selector, "a1") == {0, 1, 3}
    assert everybody(born, selector, "a2") == {0, 2, 3}


def test_the_best_migrate_each_time_so_many_were_judged_and_stay_known_at_home() -> None:
    born, selector = archipelago(), islands(every=2, migrants=1)
    born.born(None, 1, agent="a1")
    assert everybody(born, selector, "a1") == {0, 1, 3}
    assert everybody(born, selector, "a2") == {0, 1, 2, 3}
    born.born(1.1, 1, agent="a2")
    assert everybody(born, selector, "a1") == {0, 1, 2, 3}, "in a ring"
    born.decide("prune", 1)
    assert everybody(born, selector, "a2") == {0, 2, 3, 5}


def test_one_that_was_bred_from_a_migrant_belongs_to_its_agent() -> None:
    born, selector = archipelago(), islands(every=1)
    child = born.born(5.0, 1, 2, agent="a2")
    assert child in everybody(born, selector, "a2")
    assert selector.adopts(born.history, "a2", born.ids[child])


def test_there_are_no_more_islands_than_agents_and_an_engine_that_joins_brings_some() -> None:
    born = archipelago()
    many = Islands(IslandsOptions(count=9, every=1))
    assert everybody(born, many, "a1") == everybody(born, many, "a2") == {0, 1, 2, 3}
    alone = Born(["a1"])
    alone.born(1.0, agent="seed")
    alone.born(2.0, 0)
    assert everybody(alone, many, "a1") == {0, 1}


@pytest.mark.parametrize("agent", ["a1", "a2"])
def test_a_changed_task_leaves_the_seed_until_others_are_judged_again(agent: str) -> None:
    born, selector = archipelago(), islands()
    born.moves(selector, agent, 5)
    born.change_task()
    assert everybody(born, selector, agent) == set()
    born.judge(2, 1.0)
    assert everybody(born, selector, "a2") == {2}
