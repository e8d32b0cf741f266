"""What a history makes of verdicts, entry by entry."""

from __future__ import annotations

import random
from typing import Any

import pytest

from evogit.core import Metric
from evogit.events import Compared, Decision, TaskChanged
from evogit.history import History
from evogit.history.strengths import judges, said_of
from evogit.stats.bradley_terry import SPREAD
from evogit.stats.estimates import LEVEL, deviate
from evogit.testing import RecordedHistory

COMMITS = [letter * 40 for letter in "0123456789"]
METRICS = (Metric(name="strength", direction="maximize", primary=True),)


class Told(RecordedHistory):
    """A history of candidates that are compared; the first is the seed, the last one is not valid."""

    def __init__(self, commits: list[str]) -> None:
        super().__init__(metrics=METRICS, judged="pairs", evaluator="v")
        for commit in commits:
            self.propose(*commits[: commit != commits[0]], candidate=commit)
            self.evaluate(commit, "invalid" if commit == COMMITS[9] else 0.0, evaluator="v", judged="pairs")

    def beats(self, one: str, other: str, judge: str = "m", winner: Any = "a") -> None:
        self.append(Compared(judge=judge, by="model", a=one, b=other, winner=winner))


def test_values_are_those_of_now_and_the_best_moves_with_them() -> None:
    told, history = Told(COMMITS[:3]), Told(COMMITS[:3]).history
    assert (history.best, history.fitness(COMMITS[1])) == (COMMITS[0], 0.0)
    told.beats(COMMITS[1], COMMITS[0])
    history = told.history
    assert (history.best, history.records) == (COMMITS[1], COMMITS[:2])
    assert history.evaluation(COMMITS[1]).metrics == {"strength": history.fitness(COMMITS[1])}  # type: ignore[union-attr]
    told.beats(COMMITS[2], COMMITS[1])
    told.beats(COMMITS[0], COMMITS[1])
    told.beats(COMMITS[0], COMMITS[2], winner="b")
    assert history.best == COMMITS[2]
    assert history.stagnant == 0
    low, high = history.interval(COMMITS[2]) or (0, 0)
    assert low < (history.fitness(COMMITS[2]) or 0) < high < deviate(LEVEL) * 2 * SPREAD


def test_what_is_not_valid_has_no_strength_and_the_unknown_is_no_pair() -> None:
    told = Told([*COMMITS[:2], COMMITS[9]])
    told.beats(COMMITS[9], COMMITS[0])
    told.beats("f" * 40, COMMITS[0])
    told.beats(COMMITS[0], COMMITS[0])
    assert told.history.fitness(COMMITS[9]) is None
    assert told.history.strengths
    assert len(told.history.strengths.verdicts) == 1


def test_a_pruned_best_gives_way_and_comes_back() -> None:
    told = Told(COMMITS[:3])
    told.beats(COMMITS[2], COMMITS[1])
    told.beats(COMMITS[1], COMMITS[0])
    told.append(Decision(kind="prune", by="me", reason="r", candidates=(COMMITS[2],)))
    assert told.history.best == COMMITS[1]
    told.append(Decision(kind="undo", by="me", undoes=told.entries[-1].id))
    assert told.history.best == COMMITS[2]


def test_other_criteria_begin_anew() -> None:
    told = Told(COMMITS[:3])
    told.beats(COMMITS[2], COMMITS[0])
    changed: dict[str, Any] = {"task_digest": "w", "metrics": METRICS, "split": "train", "editable": ()}
    told.append(TaskChanged(by="me", evaluator="w", judged="pairs", **changed))
    assert told.history.best is None
    assert told.history.strengths
    assert not told.history.strengths.verdicts


@pytest.mark.parametrize("seed", [1, 2])
def test_strengths_depend_on_the_verdicts_and_not_on_who_asked_when(seed: int) -> None:
    told, rng = Told(COMMITS[:9]), random.Random(seed)
    for _ in range(150):
        one, other = sorted(rng.sample(COMMITS[:9], 2))
        told.beats(other, one, judge=rng.choice("mn"), winner=rng.choices("ab", (8, 2))[0])
        if rng.random() < 0.1:
            assert told.history.best
    read = History("r")
    read.extend(told.entries)
    values = [told.history.fitness(commit) for commit in COMMITS[:9]]
    assert [read.fitness(commit) for commit in COMMITS[:9]] == values
    assert (read.best, read.records) == (told.history.best, told.history.records)


def test_judges_are_told_by_what_they_agree_to_and_what_they_know() -> None:
    told = Told(COMMITS[:4])
    for one, other in ((1, 0), (2, 1), (3, 2), (2, 0), (3, 0), (3, 1)):
        told.beats(COMMITS[one], COMMITS[other])
        told.beats(COMMITS[one], COMMITS[other], judge="liar", winner="b")
        told.beats(COMMITS[one], COMMITS[other], judge="other", winner="tie" if one < 3 else "a")
    for winner in (*["a"] * 30, "tie"):
        told.append(Compared(judge="m", by="model", a=COMMITS[0], winner=winner, calibration=True))  # type: ignore[arg-type]
    told.append(Compared(judge="m", by="person", a=COMMITS[1], b=COMMITS[0], winner="a", swapped=True))
    assert told.history.strengths
    model, liar, other, person = judges(told.history.strengths)
    assert (model.verdicts, model.agreed, model.first, model.calibrated, model.right) == (6, 6, 6, 31, 30)
    assert (liar.agreed, other.decided, person.first) == (0, 3, 0)
    assert liar.reliability < person.reliability < model.reliability


def test_the_next_brief_tells_what_judges_said() -> None:
    told = Told(COMMITS[:3])
    told.beats(COMMITS[1], COMMITS[0])
    told.append(Compared(judge="m", by="model", a=COMMITS[2], b=COMMITS[1], winner="a", reason="It rhymes."))
    told.beats(COMMITS[1], COMMITS[2], winner="tie")
    assert told.history.strengths
    said = said_of(told.history.strengths, COMMITS[1], 2)
    assert said == {"verdict 1, against 2222222": "worse. It rhymes.", "verdict 2, against 2222222": "as good."}
