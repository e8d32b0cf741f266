"""Evaluations that another run of this clone has already: only what this user's engines journalled is shared."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from evogit.config import Task
from evogit.core import Evaluation
from evogit.engine.evaluation_index import EvaluationIndex
from evogit.engine.evaluations import Evaluations
from evogit.events import Evaluated
from evogit.repository import Repository
from evogit.repository.run_keys import commitment
from evogit.testing import InMemoryBackend, RecordedRun


class Backend(InMemoryBackend):
    """Finds 70 in every candidate, on this machine or on others."""

    def __init__(self, task: Task, *, shares: bool = True) -> None:
        super().__init__(task, lambda asked: 70.0)
        self._shares = shares

    @property
    def shares(self) -> bool:
        return self._shares


class Sealed:
    """A run with a key, in which a candidate waits, and what another run says of the same tree."""

    def __init__(self, folder: Path, task: Task) -> None:
        self.repository, self.task = Repository.create(folder / "own"), task
        self.run = RecordedRun(self.repository, "toy", inputs=commitment(self.repository.keys.make("toy")))
        seed = self.run.add_files({"program.py": b"1\n"}, value=1.0)
        self.waiting = self.run.add_files({"program.py": b"2\n"}, seed)
        self.key = Backend(task).key(self.repository.tree_of(self.waiting), "train")
        self.claim = Evaluation(status="ok", metrics={"score": 1e9}, key=self.key)

    def told_elsewhere(self, run: str = "other") -> str:
        entry = self.repository.journal(run, lambda entry: None).append(
            Evaluated(candidate=self.waiting, evaluation=self.claim)
        )
        assert entry
        return entry.id

    async def score(self) -> float:
        found = await Evaluations(self.run.stored.about(self.task), Backend(self.task)).evaluate(self.waiting)
        assert found
        return found[0].metrics["score"]


@pytest.fixture
def sealed(tmp_path: Path, tiny: Callable[..., Task], monkeypatch: pytest.MonkeyPatch) -> Sealed:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return Sealed(tmp_path, tiny())


async def test_a_score_that_another_run_tells_is_not_taken_over(sealed: Sealed) -> None:
    sealed.told_elsewhere()
    assert await sealed.score() == 70.0


async def test_what_our_engine_journalled_in_another_run_is(sealed: Sealed) -> None:
    EvaluationIndex(sealed.repository, "other").add(sealed.key, sealed.told_elsewhere())
    assert await sealed.score() == 1e9


@pytest.mark.parametrize("shares", [True, False])
async def test_only_what_was_evaluated_on_this_machine_is_noted(sealed: Sealed, shares: bool) -> None:
    backend = Backend(sealed.task, shares=shares)
    await Evaluations(sealed.run.stored.about(sealed.task), backend).finish(sealed.waiting)
    assert bool(EvaluationIndex(sealed.repository, "later").find(sealed.key)) == shares


async def test_an_index_of_somebody_else_counts_nothing(sealed: Sealed, tmp_path: Path) -> None:
    stranger = {"XDG_STATE_HOME": str(tmp_path / "strangers")}
    EvaluationIndex(sealed.repository, "other", stranger).add(sealed.key, sealed.told_elsewhere())
    assert await sealed.score() == 70.0


async def test_an_index_whose_entries_were_exchanged_counts_nothing(sealed: Sealed) -> None:
    honest = Evaluated(candidate=sealed.waiting, evaluation=Evaluation(status="ok", metrics={"score": 1.0}, key="x"))
    entry = sealed.repository.journal("honest", lambda entry: None).append(honest)
    assert entry
    EvaluationIndex(sealed.repository, "other").add(sealed.key, entry.id)
    file = sealed.repository.common / "evogit" / "evaluated"
    file.write_text(file.read_text().replace(entry.id, sealed.told_elsewhere()))
    assert await sealed.score() == 70.0


async def test_a_link_in_its_place_is_not_followed(sealed: Sealed, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    canary.write_text("mine\n")
    (sealed.repository.common / "evogit" / "evaluated").symlink_to(canary)
    EvaluationIndex(sealed.repository, "other").add(sealed.key, sealed.told_elsewhere())
    assert (await sealed.score(), canary.read_text()) == (70.0, "mine\n")
