"""Where the calls of agents that ask models go."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from evogit.selection import Selector
from evogit.selection.elitist import Elitist
from evogit.selection.frugal import Frugal, FrugalOptions
from evogit.testing import RecordedHistory

MIXED = {"population": [{"kind": "editor", "model": "m", "count": 1}, {"kind": "mutator", "count": 1}]}
MOVES = 400


@pytest.fixture
def run() -> RecordedHistory:
    """An editor and a mutator; a seed of 0, lines that reached 10, 8, 4, and one that failed."""
    run = RecordedHistory(agents=("a1", "a2"), settings=MIXED)
    seed = run.add(0.0)
    for value in (4.0, 8.0, 10.0):
        run.add(value, seed)
    run.add("crashed", seed)
    return run


def parents(selector: Selector, run: RecordedHistory, agent: str) -> Counter[float | None]:
    """How often an agent works on what value."""
    rng = random.Random(1)
    moves = [selector.next_move(run.history, agent, rng) for _ in range(MOVES)]
    return Counter(run.history.fitness(move.parents[0]) for move in moves if move.operator == "mutation")


@pytest.mark.parametrize("selector", [Frugal(), Elitist()], ids=["frugal", "default"])
def test_calls_go_to_the_best_and_never_to_what_lost_half(run: RecordedHistory, selector: Selector) -> None:
    found = parents(selector, run, "a1")
    assert {*found} <= {10.0, 8.0}
    assert found[10.0] > 0.7 * found.total()


def test_what_is_there_already_may_go_to_the_fittest(run: RecordedHistory) -> None:
    move = Frugal().next_move(run.history, "a1", random.Random(1))
    assert [run.history.fitness(each) for each in move.spares] == [10.0, 8.0]


def test_calls_work_on_the_latest_of_equals_as_neutral_changes_add_up(run: RecordedHistory) -> None:
    best = run.history.best
    assert best
    equal = run.add(10.0, best)
    assert run.history.best == best
    moves = [Frugal(FrugalOptions(merge=False)).next_move(run.history, "a1", random.Random(n)) for n in range(20)]
    assert {move.parents for move in moves} == {(equal,)}
    assert all(move.rebase for move in moves)
    better = run.add(11.0, equal)
    assert (run.history.best, run.history.latest_best) == (better, better)


def test_free_agents_begin_anew_as_before(run: RecordedHistory) -> None:
    assert parents(Elitist(), run, "a2")[0.0] > 0


def test_models_settle_conflicts_only_while_that_pays(run: RecordedHistory) -> None:
    frugal, history = Frugal(), run.history
    assert not frugal._model_merges_pay(history)  # three records in five: changes do well
    a, b = (each.commit for each in list(history.phylogeny)[2:4])
    for _ in range(20):
        run.add(1.0, b)
    assert frugal._model_merges_pay(history)
    for _ in range(3):
        run.add(1.0, b, a, strategy="model")
    assert not frugal._model_merges_pay(history)
