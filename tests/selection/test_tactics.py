"""When a model is asked what to try instead, and how long its answer counts."""

from __future__ import annotations

import random

import pytest

from evogit.core import Tactic
from evogit.selection import Move
from evogit.selection.frugal import Frugal, FrugalOptions
from evogit.selection.tactics import TRIAL, Tactics
from evogit.testing import RecordedHistory, run_started

PAID = {"population": [{"kind": "editor", "model": "m", "count": 1}]}


@pytest.fixture
def run() -> RecordedHistory:
    """A seed, a better child, and many of that one that were no better."""
    run = RecordedHistory(settings=PAID)
    best = run.add(5.0, run.add(0.0))
    for _ in range(25):
        run.add(1.0, best)
    return run


def moves(run: RecordedHistory, **options: bool) -> list[Move]:
    frugal, rng = Frugal(FrugalOptions(**options)), random.Random(1)
    return [frugal.next_move(run.history, "a1", rng) for _ in range(100)]


def advise(run: RecordedHistory, text: str = "tried in vain: tuning; sort first") -> str:
    best = run.history.best
    assert best
    return run.append(Tactic(engine="e", move=run.history.moves, agent="a1", best=best, text=text))


def test_after_a_plateau_a_model_looks_back_at_the_best(run: RecordedHistory) -> None:
    assert all(move.advise and move.parents == (run.history.best,) for move in moves(run))
    assert not any(move.advise for move in moves(run, tactics=False))


def test_an_engine_that_joined_without_models_does_not_keep_the_others_from_it(run: RecordedHistory) -> None:
    run.append(run_started(engine="joined", agents=("a2",), settings={"population": [{"kind": "mutator"}]}))
    assert moves(run)[0].advise
    assert not Tactics(run.history).is_due("a2")


def test_a_tactic_is_a_call_and_one_in_twenty_at_most(run: RecordedHistory) -> None:
    before = run.history.counts.charged
    advise(run, text="")
    assert run.history.counts.charged == before + 1
    for _ in range(10):
        run.add(1.0, run.history.best or "")
    assert not any(move.advise or move.tactic for move in moves(run))
    for _ in range(10):
        run.add(1.0, run.history.best or "")
    assert moves(run)[0].advise


@pytest.mark.parametrize(("limit", "due"), [(27, False), (38, False), (39, True), (None, True)])
def test_it_is_not_asked_for_where_too_few_calls_are_left_to_use_it(limit: int | None, due: bool) -> None:
    run = RecordedHistory(settings={**PAID, "proposals": limit})
    best = run.add(5.0, run.add(0.0))
    for _ in range(25):
        run.add(1.0, best)
    assert moves(run)[0].advise == due


def test_half_of_the_briefs_have_it_and_go_on_with_what_it_made(run: RecordedHistory) -> None:
    tactic, best = advise(run), run.history.best
    told = [move for move in moves(run) if move.tactic]
    assert 30 < len(told) < 70
    assert {move.parents for move in told} == {(best,)}
    made = run.add(2.0, best or "", tactic=tactic)  # worse, but another beginning
    assert {move.parents for move in moves(run) if move.tactic} == {(best,), (made,)}
    assert all(move.parents == (best,) for move in moves(run) if not move.tactic)


def test_it_is_dropped_once_it_brings_nothing(run: RecordedHistory) -> None:
    tactic, best = advise(run), run.history.best or ""
    for value in (2.0, 3.0):
        for _ in range(TRIAL - 2):
            run.add(1.0, best)
        run.add(value, best, tactic=tactic)
    assert Tactics(run.history).in_force == tactic
    for _ in range(TRIAL):
        run.add(3.0, best, tactic=tactic)
    assert not Tactics(run.history).in_force
