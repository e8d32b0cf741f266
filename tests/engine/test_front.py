"""A run over several metrics ends with its whole front evaluated on the holdout."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from evogit.config import Task
from evogit.core import Evaluation, Metric
from evogit.repository import Repository
from evogit.review.json_records import front_record
from evogit.run import Run, Settings
from evogit.selection.pareto import front
from evogit.testing import Answer, Asked, InMemoryBackend, ScriptedAgent


def test_all_that_are_unbeaten_are_evaluated_on_the_holdout(path: Path, tiny: Callable[..., Task]) -> None:
    size = Metric(name="size", direction="minimize")
    plain = tiny()
    task = replace(plain, metrics=(*plain.metrics, size))

    def answer(asked: Asked) -> Answer:
        score, cost = int(asked.tree[:2], 16), int(asked.tree[2:4], 16)
        about = {"split": asked.split, "repeat": asked.repeat}
        return Evaluation(status="ok", metrics={task.primary.name: score, "size": cost}, **about)  # type: ignore[arg-type]

    backend, settings = InMemoryBackend(task, answer), Settings(evaluations=20, selector="pareto:over=metrics")
    run = Run(Repository.create(path), task, "r", settings, agents=[ScriptedAgent()], backend=backend)
    asyncio.run(run.evolve())
    history = run.history
    unbeaten = front(history)
    assert len(unbeaten) > 1
    assert all(history.judged(commit, "holdout") for commit in unbeaten)
    found = front_record(history)
    assert found is not None
    assert found["hypervolume"] == found["holdout_hypervolume"]
