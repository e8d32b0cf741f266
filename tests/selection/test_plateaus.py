"""When calls of paying agents stand still: who looks back, which briefs have the answer, where calls begin then."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from evogit.events import FailedProposal, Spent, Tactic
from evogit.selection import LookBack, Move
from evogit.selection.frugal import Frugal, FrugalOptions
from evogit.selection.plateaus import Plateau
from evogit.testing import RecordedHistory, run_started

EDITOR, MUTATOR = {"kind": "editor", "model": "m"}, {"kind": "mutator"}


def begun(**settings: object) -> RecordedHistory:
    """An editor beside a mutator, a seed of 0 and a first gain by a call."""
    run = RecordedHistory(agents=("a1", "a2"), settings={"population": [EDITOR, MUTATOR], **settings})
    call(run, 10.0, run.add(0.0))
    return run


def call(run: RecordedHistory, value: float | None, parent: str, tactic: str = "") -> str:
    """A call of the editor: a candidate of this value, or a reply that could not be used."""
    move = run.history.moves
    run.append(Spent(engine="e", move=move, agent="a1", model="m", prompt=100))
    if value is not None:
        return run.add(value, parent, move=move, tactic=tactic)
    return run.append(FailedProposal(engine="e", move=move, agent="a1", parents=(parent,), reason="unreadable"))


def dry(run: RecordedHistory, count: int, parent: str = "") -> None:
    for _ in range(count):
        call(run, 1.0, parent or run.history.best or "")


def advise(run: RecordedHistory, text: str = "tried without success: tuning; sort first") -> str:
    move, best = run.history.moves, run.history.best or ""
    run.append(Spent(engine="e", move=move, agent="a1", model="m", prompt=100))
    return run.append(Tactic(engine="e", move=move, agent="a1", best=best, text=text))


def moves(run: RecordedHistory, agent: str = "a1", **options: bool) -> list[Move]:
    frugal, rng = Frugal(FrugalOptions(merge=False, **options)), random.Random(1)
    return [frugal.next_move(run.history, agent, rng) for _ in range(200)]


def beginnings(run: RecordedHistory) -> Counter[str]:
    plateau, rng = Plateau(run.history, "a1"), random.Random(1)
    return Counter(plateau.beginning(rng) for _ in range(300))


def test_a_model_looks_back_after_four_calls_without_a_gain() -> None:
    run = begun(calls=30)
    dry(run, 3)
    assert not any(isinstance(move, LookBack) for move in moves(run))
    call(run, None, run.history.best or "")
    assert all(isinstance(move, LookBack) and move.parents == (run.history.best,) for move in moves(run))
    assert not any(isinstance(move, LookBack) for move in moves(run, tactics=False))
    assert not any(isinstance(move, LookBack) for move in moves(run, "a2")), "a mutator has no model"


def test_moves_of_mutators_are_no_calls() -> None:
    run = begun(calls=30)
    dry(run, 3)
    for value in (1.0, 11.0, *([1.0] * 40)):
        run.add(value, run.history.best or "", agent="a2")
    assert Plateau(run.history, "a1").dry == 3
    assert {move.parents for move in moves(run)} == {(run.history.best,)}


def test_drift_is_no_gain_until_it_adds_up() -> None:
    run = begun(calls=30)
    for number in range(1, 5):
        call(run, 10.0 + number / 1000, run.history.best or "")
    assert isinstance(moves(run)[0], LookBack)
    call(run, 10.02, run.history.best or "")
    assert Plateau(run.history, "a1").dry == 0


def test_the_answer_reaches_the_next_two_briefs_and_the_next_question_waits() -> None:
    run = begun(calls=60)
    dry(run, 4)
    tactic, best = advise(run), run.history.best
    for _ in range(2):
        for value in (1.0, 2.0, 1.5):
            run.add(value, best or "", agent="a2")
        assert {(move.tactic, move.parents) for move in moves(run)} == {(tactic, (best,))}
        call(run, 1.0, best or "", tactic)
    assert not any(isinstance(move, LookBack) or move.tactic for move in moves(run))
    dry(run, 2)
    assert all(isinstance(move, LookBack) for move in moves(run)), "four calls since the last one"


@pytest.mark.parametrize(("limit", "most"), [({}, 4), ({"calls": 40}, 4), ({"calls": 24}, 2), ({"calls": 9}, 0)])
def test_one_call_in_ten_looks_back(limit: dict[str, int], most: int) -> None:
    run = begun(**limit)
    while run.history.spent.calls < limit.get("calls", 40):
        if isinstance(moves(run)[0], LookBack):
            advise(run)
        else:
            dry(run, 1)
    assert len(run.history.tactics) == most
    moved = [each.move for each in run.history.tactics.values()]
    assert all(move + 2 <= limit.get("calls", 99) for move in moved), "two calls are left for an answer"


def test_on_a_plateau_calls_begin_elsewhere_and_the_share_is_learnt() -> None:
    run = begun()
    other = run.add(8.0, run.history.seed or "", agent="a2")
    assert beginnings(run) == {"best": 300}
    dry(run, 4)
    first = beginnings(run)
    assert 25 < first["other"] < 80
    assert first["afresh"] > 25
    assert {move.parents[0] for move in moves(run, tactics=False)} == {run.history.best, other, run.history.seed}
    fresh = [move for move in moves(run, tactics=False) if move.parents[0] == run.history.seed]
    assert not any(move.rebase or move.spares for move in fresh), "it stays apart from the best"
    dry(run, 6, other)
    assert beginnings(run)["other"] < first["other"] / 2
    made = call(run, 7.0, run.history.seed or "")
    call(run, 12.0, made)
    dry(run, 6)
    assert beginnings(run) == {"best": 300}, "a gain took six and a half calls until now"
    dry(run, 1)
    assert beginnings(run)["afresh"] > 2 * first["afresh"], "a best descends from one that began afresh"


def test_agents_of_the_users_own_leave_the_best_too() -> None:
    run = RecordedHistory(settings={"population": [{"kind": "mine.py:Agent"}]})
    best = run.add(10.0, run.add(0.0))
    for _ in range(4):
        run.add(1.0, best)
    assert {move.parents[0] for move in moves(run)} == {best, run.history.seed}


def test_an_engine_that_joined_without_models_does_not_keep_the_others_from_it() -> None:
    run = begun(calls=30)
    dry(run, 4)
    joined = {"population": [MUTATOR], "calls": 30}
    run.append(run_started(engine="joined", agents=("b1",), settings=joined))
    assert isinstance(moves(run)[0], LookBack)
    assert not Plateau(run.history, "b1").is_due()
