"""Changes of one number go on without a model while that pays."""

from __future__ import annotations

import random

import pytest

from evogit.events import Duplicate
from evogit.repository import Repository
from evogit.selection import Change
from evogit.selection.frugal import Frugal, FrugalOptions
from evogit.selection.number_steps import NumberSteps

from .grown import Grown


def setting(rate: float, rounds: int = 3, end: bytes = b"") -> dict[str, bytes | None]:
    return {"run.toml": b"rate = %r\nrounds = %d\n" % (rate, rounds) + end}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return Repository.create(tmp_path_factory.mktemp("steps") / "r")


@pytest.fixture
def grown(repository: Repository) -> Grown:
    return Grown(repository, seed={**setting(0.5), "notes.txt": b"-\n"})  # type: ignore[dict-item]


def step(grown: Grown, agent: str = "a1") -> tuple[str, str] | None:
    """How the next step is called and what it makes of the rate and the rounds."""
    move = NumberSteps(grown.repository).move(grown.history, agent)
    if move is None:
        return None
    assert move.operator == "mutation"
    assert not move.asks
    return move.strategy, move.change["run.toml"].decode()


def made(grown: Grown, onto: int, value: float | None) -> int:
    """The candidate that the next step makes, with its value."""
    found = step(grown, onto)
    assert found
    return grown.grow({"run.toml": found[1].encode()}, None if value is None else {"a": value}, onto, strategy=found[0])


def test_what_helped_goes_as_far_again_then_twice_as_far_until_it_does_not_help(grown: Grown) -> None:
    assert step(grown) is None
    best = grown.grow(setting(0.6), {"a": 1.0}, 0)
    assert step(grown) == ("extend_number", "rate = 0.7\nrounds = 3\n")
    better = made(grown, best, 2.0)
    assert step(grown) == ("extend_number", "rate = 0.9\nrounds = 3\n")
    made(grown, better, 1.5)
    assert step(grown) is None, "neither again nor back to what its parent was"


def test_what_did_not_help_is_tried_the_other_way(grown: Grown) -> None:
    grown.grow(setting(0.5, rounds=5), {"a": -1.0}, 0)
    grown.grow(setting(0.75), None, 0)
    assert step(grown) == ("mirror_number", "rate = 0.25\nrounds = 3\n"), "the latest first"
    made(grown, 0, -1.0)
    assert step(grown) == ("mirror_number", "rate = 0.5\nrounds = 1\n")
    made(grown, 0, -1.0)
    assert step(grown) is None


def test_of_nearly_the_same_change_the_other_way_is_tried_once(grown: Grown) -> None:
    for rate in (0.75, 0.76, 0.8, 1.25):
        grown.grow(setting(rate), {"a": -1.0}, 0)
    assert step(grown) == ("mirror_number", "rate = -0.25\nrounds = 3\n")
    made(grown, 0, -1.0)
    assert step(grown) == ("mirror_number", "rate = 0.2\nrounds = 3\n")
    made(grown, 0, -1.0)
    assert step(grown) is None


def test_after_ten_steps_in_a_row_an_agent_is_asked(grown: Grown) -> None:
    best = grown.grow(setting(0.5, rounds=4), {"a": 1.0}, 0)
    for value in range(2, 12):
        best = made(grown, best, float(value))
    assert step(grown) is None


def test_an_equal_that_came_later_hides_no_step(grown: Grown) -> None:
    best = grown.grow(setting(0.6), {"a": 1.0}, 0)
    grown.grow(setting(0.6, end=b"more = true\n"), {"a": 1.0}, best)
    assert step(grown) == ("extend_number", "rate = 0.7\nrounds = 3\n")


def test_equals_and_changes_of_more_than_a_number_lead_nowhere(grown: Grown) -> None:
    grown.grow(setting(0.6), {"a": 0.0}, 0)
    grown.grow(setting(0.6, rounds=4), {"a": -1.0}, 0)
    assert step(grown) is None
    grown.grow(setting(0.6, end=b"more = true\n"), {"a": 1.0}, 0)
    assert step(grown) is None


def test_no_step_is_made_twice_nor_once_more_where_it_came_to_nothing(grown: Grown) -> None:
    grown.grow(setting(0.6), {"a": 1.0}, 0)
    grown.candidate(0, tree=grown.repository.trees.write(None, {**setting(0.7), "notes.txt": b"-\n"}))
    assert step(grown) is None, "somebody made it, if it waits for its evaluation"
    other = grown.grow(setting(0.5, rounds=4), {"a": 2.0}, 0)
    assert step(grown)
    of, first = (grown.ids[other],), grown.ids[0]
    grown.append(Duplicate(engine="e", move=9, agent="a1", first=first, parents=of, strategy="extend_number"))
    assert step(grown) is None


def test_steps_end_where_they_help_less_often_than_anything_else(grown: Grown) -> None:
    best = 0
    for value in range(1, 9):
        best = grown.grow(setting(0.5, end=b"x" * value), {"a": float(value)}, best)
    same = b"x" * 8
    grown.grow(setting(0.6, end=same), {"a": 0.0}, best)
    made(grown, best, 0.0)
    grown.grow(setting(0.7, end=same), {"a": 0.0}, best)
    assert step(grown) is None, "one step helped nothing, where eight of nine others did"


def test_in_deterministic_runs_each_step_is_one_agents(repository: Repository) -> None:
    grown = Grown(repository, ("a1", "a2"), seed=setting(0.5))  # type: ignore[arg-type]
    grown.grow(setting(0.75), {"a": -1.0}, 0)
    for agent in ("a1", "a2"):
        grown.adopt(agent, 0)
    grown.history.attempts.horizon = 9
    assert sum(step(grown, agent) is not None for agent in ("a1", "a2")) == 1


def test_frugal_makes_them_before_it_asks_and_they_use_up_no_proposals(grown: Grown) -> None:
    best = grown.grow(setting(0.6), {"a": 1.0}, 0)
    move = Frugal(numbers=NumberSteps(grown.repository)).next_move(grown.history, "a1", random.Random(1))
    assert (move.strategy, move.title) == ("extend_number", "rate = 0.6 -> rate = 0.7")
    unasked = Frugal(FrugalOptions(numbers=False), numbers=NumberSteps(grown.repository))
    asked = unasked.next_move(grown.history, "a1", random.Random(1))
    assert not isinstance(asked, Change)
    charged = grown.history.counts.charged
    made(grown, best, 2.0)
    assert grown.history.counts.charged == charged
