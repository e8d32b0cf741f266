"""Which calls of agents that ask models see the code of another line, and how often."""

from __future__ import annotations

import random

import pytest

from evogit.events import Spent
from evogit.selection.donors import LEAST_SHARE, MOST_SHARE
from evogit.selection.frugal import Frugal, FrugalOptions
from evogit.testing import RecordedHistory

PAID = {"population": [{"kind": "editor", "model": "m", "count": 1}]}
CALLS = 600


def call(run: RecordedHistory, value: float, parent: str, *shown: str) -> str:
    """A candidate that a model was paid for, whose brief showed others."""
    run.append(Spent(engine="e", move=len(run.history.phylogeny), agent="a1", model="m", prompt=1, completion=1))
    return run.add(value, parent, shown=shown)


@pytest.fixture
def run() -> RecordedHistory:
    """Two lines from the seed, the best one and one that is nearly as good; nothing was tried since."""
    run = RecordedHistory(settings=PAID)
    seed = run.add(0.0)
    call(run, 9.0, seed)
    call(run, 10.0, seed)
    return run


def share(run: RecordedHistory, **options: bool) -> float:
    """The share of calls on the best that see another line."""
    frugal, rng = Frugal(FrugalOptions(tactics=False, merge=False, **options)), random.Random(1)
    moves = [frugal.next_move(run.history, "a1", rng) for _ in range(CALLS)]
    moves = [move for move in moves if move.parents == (run.history.best,)]
    donors = [move.donor for move in moves if move.donor]
    assert {run.history.fitness(donor) for donor in donors} <= {9.0}
    return len(donors) / len(moves)


def test_a_third_of_the_calls_see_another_line_only_while_the_run_stands_still(run: RecordedHistory) -> None:
    best = run.history.best or ""
    assert share(run) == 0.0
    call(run, 5.0, best)
    assert share(run) == 0.0
    call(run, 5.0, best)
    assert share(run) == pytest.approx(1 / 3, abs=0.06)
    assert share(run, donors=False) == 0.0
    call(run, 11.0, best)
    assert share(run) == 0.0


@pytest.mark.parametrize("helps", [True, False])
def test_the_share_follows_what_such_calls_bring(run: RecordedHistory, helps: bool) -> None:
    other, best = (run.history.phylogeny.ids[number] for number in (1, 2))
    parent = call(run, 1.0, best)
    for _ in range(3):
        call(run, 1.0, best)
    for _ in range(15):  # from a weak parent, so that nothing becomes the best of all
        call(run, 2.0 if helps else 0.5, parent, other)
        call(run, 0.5 if helps else 2.0, parent, run.history.phylogeny.children(parent)[0])
    found = share(run)
    assert found == pytest.approx(MOST_SHARE if helps else LEAST_SHARE, abs=0.06)
