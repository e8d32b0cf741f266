"""Runs whose metric depends on the machine: gains are measured side by side, whatever the machine does meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.drift import PACES, SAVED, claims, evolve, found, holds
from evogit.config import Task
from evogit.core import Evaluation, Metric
from evogit.history.paired_scores import PairedScores, beside
from evogit.history.standing import compare

pytestmark = pytest.mark.slow

MakeTask = Callable[..., Task]


@pytest.mark.parametrize("pace", PACES)
def test_a_change_that_does_nothing_is_not_called_better(task: Task, tmp_path: Path, pace: str) -> None:
    runs = [evolve(tmp_path / str(seed), task, PACES[pace], 0.0, seed) for seed in range(20)]
    assert sum(map(claims, runs)) <= 2


@pytest.mark.parametrize("pace", PACES)
def test_a_gain_is_found_and_measured_rightly_while_the_machine_changes(task: Task, tmp_path: Path, pace: str) -> None:
    runs = [evolve(tmp_path / str(seed), task, PACES[pace], SAVED, seed) for seed in range(10)]
    assert sum(found(history) and holds(history) for history in runs) >= 8


def test_what_was_measured_side_by_side_is_counted_apart(task: Task, path: Path) -> None:
    history = evolve(path, task, PACES["steady"], SAVED, 0)
    best = history.best or ""
    pairs = [each for each in history.scores.each(best) if each.beside]
    assert pairs
    assert history.counts.references >= history.counts.repeated - history.repeats
    assert all(each.beside and each.beside.metrics for each in pairs)


def test_a_reference_is_worth_what_its_pairs_say_not_what_it_measured_alone() -> None:
    seconds = Metric(name="m", direction="minimize", primary=True)
    scores = PairedScores.of([seconds], "train", 2)

    def measured(name: str, value: float, repeat: int = 0, reference: tuple[str, float] | None = None) -> None:
        found = Evaluation(status="ok", metrics={"m": value}, repeat=repeat)
        other = Evaluation(status="ok", metrics={"m": reference[1]}, repeat=repeat) if reference else None
        scores.record(name, beside(found, reference[0] if reference else "", other))

    measured("s", 10.0)
    measured("whole", 4.0)  # the machine was quick just then
    for repeat in range(3):
        measured("s", 10.0 + repeat / 100, 1 + repeat, ("whole", 8.0))
    compared = compare(scores, "whole", "s")
    assert compared
    assert compared.value == pytest.approx(8.0, rel=0.01)
    assert compared.gain == pytest.approx(2.0, rel=0.02)
