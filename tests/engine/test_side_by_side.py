"""Runs whose metric depends on the machine: gains are measured side by side, whatever the machine does meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.drift import PACES, SAVED, claims, evolve, found, holds
from evogit.config import Task

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
