"""Would-be bests and the reviewer: nothing is the best before it was looked at, and people have the last word."""

from __future__ import annotations

from typing import Any

import pytest

from evogit.core import HUMAN
from evogit.events import Reviewed
from evogit.history.standing import standing
from evogit.testing import RecordedHistory, run_started


def reviewed(**known: Any) -> RecordedHistory:
    run = RecordedHistory(settings={"reviewer": "m"}, **known)
    run.add(1.0)
    return run


def review(run: RecordedHistory, candidate: str, verdict: Any = "passed", reason: str = "") -> str:
    return run.append(Reviewed(engine="e", candidate=candidate, model="m", verdict=verdict, reason=reason))


def test_a_would_be_best_is_the_best_once_it_was_reviewed_or_could_not_be() -> None:
    run = reviewed()
    history, seed = run.history, run.history.seed or ""
    assert (history.best, history.would_be_best) == (seed, None)
    good = run.add(2.0, seed)
    assert (history.best, history.would_be_best) == (seed, good)
    better = run.add(3.0, seed)
    assert history.would_be_best == better
    review(run, better, "unreviewed", "no answer")
    assert (history.best, history.would_be_best) == (better, None)
    assert standing(history, good).status == "ok"
    run.add(2.5, seed)
    assert history.would_be_best is None, "what would not be the best needs no review"


def test_a_refused_one_is_no_best_and_no_parent_and_the_next_one_follows() -> None:
    run = reviewed()
    history, seed = run.history, run.history.seed or ""
    good, cheat = run.add(2.0, seed), run.add(9.0, seed)
    stagnant = history.stagnant
    refusal = review(run, cheat, "refused", "not earned: a table of answers")
    assert cheat in history.pruned
    assert (standing(history, cheat).status, history.refused) == ("refused", {cheat: "not earned: a table of answers"})
    assert (history.best, history.would_be_best) == (seed, good)
    assert history.stagnant == stagnant, "a refusal is no progress"
    review(run, good)
    assert history.best == good
    run.decide("undo", undoes=refusal)
    assert (history.best, history.would_be_best) == (cheat, None), "it is not asked for again"
    assert not history.refused


def test_people_and_runs_without_a_reviewer_need_no_review() -> None:
    run = reviewed()
    history, seed = run.history, run.history.seed or ""
    mine = run.add(2.0, seed, agent=HUMAN, operator="human", engine="")
    assert (history.best, history.would_be_best) == (mine, None)
    waiting = run.add(3.0, seed)
    assert history.best == mine
    run.append(run_started(engine="f"))
    assert (history.best, history.would_be_best) == (waiting, None)
    run.append(run_started(engine="g", settings={"reviewer": "m"}))
    assert history.best == waiting, "what was the best already stays it"


@pytest.mark.parametrize("verdict", ["passed", "refused"])
def test_noisy_would_be_bests_are_reviewed_once_they_are_believed(verdict: str) -> None:
    run = reviewed(repeats=2)
    history, seed = run.history, run.history.seed or ""
    for repeat, value in ((1, 1.1), (2, 0.9)):
        run.evaluate(seed, value, repeat=repeat)
    good = run.add(5.0, seed)
    assert history.would_be_best is None, "it is not believed yet"
    for repeat, value in ((1, 5.1), (2, 4.9)):
        run.evaluate(good, value, repeat=repeat)
    assert (history.best, history.would_be_best) == (seed, good)
    review(run, good, verdict)
    assert history.best == (good if verdict == "passed" else seed)
    assert history.would_be_best is None
