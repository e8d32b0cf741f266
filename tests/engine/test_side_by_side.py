"""Runs whose metric depends on the machine: gains are measured side by side, whatever the machine does meanwhile."""

from __future__ import annotations

import asyncio
import math
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from evogit.agents import Agent, Brief, Proposal
from evogit.config import Task
from evogit.core import Metric
from evogit.history import History
from evogit.history.paired_scores import PairedScores
from evogit.repository import Repository
from evogit.run import Run, Settings
from evogit.testing import Answer, Asked, InMemoryBackend

pytestmark = pytest.mark.slow

MakeTask = Callable[..., Task]

SECONDS = Metric(name="seconds", direction="minimize", primary=True)
CANDIDATES = 16
PLANTED = 11
SPREAD = 0.03


class Next(Agent):
    """An agent that proposes the numbers from 1 on."""

    kind = "next"

    def __init__(self) -> None:
        self._number = 0

    async def propose(self, brief: Brief, rng: random.Random) -> Proposal:
        await asyncio.sleep(0)
        self._number += 1
        return Proposal(changes={"program.py": b"# %d\n" % self._number}, title=f"number {self._number}")


class Drifting(InMemoryBackend):
    """A machine whose pace changes; `gain` is what the candidate PLANTED saves."""

    def __init__(self, task: Task, pace: Callable[[int], float], gain: float, seed: int) -> None:
        super().__init__(task, self._measured)
        self._pace, self._gain = pace, gain
        self._rng = random.Random(seed)

    def _measured(self, asked: Asked) -> Answer:
        found = re.search(rb"# (\d+)\n", asked.files.changed)
        worth = 1 - self._gain * (found is not None and int(found[1]) == PLANTED)
        return worth * self._pace(asked.number) * math.exp(self._rng.gauss(0, SPREAD))


def steady(number: int) -> float:
    return 1.0


def halved(number: int) -> float:
    """Half as fast from the middle of the run on."""
    return 1.0 if number < 20 else 2.0


def a_while(number: int) -> float:
    """Half as fast for a while."""
    return 2.0 if 14 <= number < 34 else 1.0


def evolve(path: Path, task: Task, pace: Callable[[int], float], gain: float, seed: int) -> History:
    task = replace(task, metrics=(SECONDS,), repeats=3, measures="time")
    backend = Drifting(task, pace, gain, seed)
    settings = Settings(evaluations=1 + CANDIDATES, seed=seed)
    run = Run(Repository.create(path), task, "r", settings, agents=[Next()], backend=backend)
    asyncio.run(run.evolve())
    return run.history


@pytest.mark.parametrize("pace", [steady, halved, a_while])
def test_a_change_that_does_nothing_is_not_called_better(
    tmp_path: Path, tiny: MakeTask, pace: Callable[[int], float]
) -> None:
    task, called = tiny(), 0
    for seed in range(20):
        history = evolve(tmp_path / str(seed), task, pace, 0.0, seed)
        called += history.best != history.seed and history.surely_fitter(history.best or "", history.seed or "")
    assert called <= 2


@pytest.mark.parametrize("pace", [steady, halved, a_while])
def test_a_gain_is_found_and_measured_rightly_while_the_machine_changes(
    tmp_path: Path, tiny: MakeTask, pace: Callable[[int], float]
) -> None:
    task, right = tiny(), 0
    for seed in range(10):
        history = evolve(tmp_path / str(seed), task, pace, 0.1, seed)
        scores, best = history.scores, history.best or ""
        assert isinstance(scores, PairedScores)
        if best != history.seed and history.phylogeny[best].title == f"number {PLANTED}":
            above, half = scores.ratio(best, history.seed or "")
            right += above - half <= math.log(0.9) <= above + half and history.surely_fitter(best, history.seed or "")
    assert right >= 8
