"""What EvoGit ships for tests: it is used by the tests of this project everywhere, here are its promises."""

from __future__ import annotations

import asyncio
from pathlib import Path

from evogit.agents import NoUsableChangeError
from evogit.config import Task
from evogit.core import Evaluation, Evidence
from evogit.history import History
from evogit.repository import Repository
from evogit.run import Run, Settings
from evogit.testing import Asked, InMemoryBackend, RecordedHistory, RecordedRun, ScriptedAgent
from tests.conftest import MakeTask


def evolve(path: Path, task: Task, agent: ScriptedAgent, backend: InMemoryBackend, **settings: object) -> History:
    run = Run(
        Repository.create(path),
        task,
        "r",
        Settings(**settings),  # type: ignore[arg-type]
        agents=[agent],
        backend=backend,
    )
    asyncio.run(run.evolve())
    return run.history


def test_a_backend_answers_with_scores_failures_or_all_of_an_evaluation(tmp_path: Path, tiny: MakeTask) -> None:
    def answer(asked: Asked):
        if asked.number == 2:
            return "crashed"
        if asked.number == 3:
            return Evaluation(status="ok", metrics={"score": 7.0}, split=asked.split), Evidence(stdout=b"said")
        return float(len(asked.changed.get("program.py", b"")))

    task = tiny()
    backend = InMemoryBackend(task, answer)
    history = evolve(tmp_path / "r", task, ScriptedAgent(), backend, evaluations=4, selector="sequential")
    told = [history.evaluation(candidate.commit) for candidate in history.phylogeny]
    assert [(each.status, each.metrics.get("score")) for each in told if each][:3] == [
        ("ok", 0.0),
        ("crashed", None),
        ("ok", 7.0),
    ]
    assert [asked.split for asked in backend.asked[:4]] == ["train"] * 4


def test_an_agent_proposes_changes_or_fails_and_remembers_what_it_was_told(tmp_path: Path, tiny: MakeTask) -> None:
    task = tiny()

    async def think(brief, rng):
        if brief.move == 2:
            raise NoUsableChangeError("no idea")
        return {"extra/note": b"%d" % brief.move}

    agent = ScriptedAgent(think)
    history = evolve(tmp_path / "r", task, agent, InMemoryBackend(task), proposals=3, selector="sequential")
    assert [brief.move for brief in agent.briefs] == [1, 2, 3]
    assert [failure.reason for failure in history.failures] == ["no idea"]
    assert len(history.phylogeny) == 3


def test_a_history_is_told_in_memory_and_in_a_repository_alike(tmp_path: Path) -> None:
    told, run = RecordedHistory(), RecordedRun(tmp_path / "r")
    for each in (told, run):
        files = {"main.py": b"1"}
        seed = run.add_files(files, value=1.0) if each is run else told.add(1.0)
        better = run.add_files({"main.py": b"2"}, seed, value=2.0) if each is run else told.add(2.0, seed)
        each.adopt(better)
        each.evaluate(seed, 1.0, repeat=1)
        each.decide("promote", better)
        each.stop()
    assert told.history.best == told.history.heads["a1"] == [*told.history.phylogeny][1].commit
    assert run.history.best == run.history.heads["a1"] == [*run.history.phylogeny][1].commit
    assert [type(entry.event) for entry in told.entries] == [type(entry.event) for entry in run.entries]
    again = RecordedRun(tmp_path / "r")
    assert [entry.id for entry in again.entries] == [entry.id for entry in run.entries]
    assert again.repository.trees.files(again.repository.tree_of(run.history.best or ""), lambda _: True) == {
        "main.py": b"2"
    }
