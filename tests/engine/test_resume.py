"""An engine that is killed anywhere loses nothing that was recorded, and the next one finishes the job."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evogit.config import Task
from evogit.config.run_settings import Settings
from evogit.events import Adopted, Entry, Evaluated, Event, Proposed, RunStarted, Stopped
from evogit.history import History
from evogit.history.context import StoredRun
from evogit.repository import Journal, Repository
from evogit.run import Run
from evogit.testing import InMemoryBackend, ScriptedAgent
from tests.clock import wait_until


def die_around(point: str, number: int, after: bool) -> None:
    """Have this process killed around the call of that number of a method with an argument of that type."""
    owner, name, wanted = point.split(".")
    of: Any = {"Repository": Repository, "Journal": Journal}[owner]
    write, calls = getattr(of, name), [0]

    def killed(self: Any, *arguments: Any, **keywords: Any) -> Any:
        if not wanted or any(type(argument).__name__ == wanted for argument in arguments):
            calls[0] += 1
        doomed = calls[0] == number
        if doomed and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        result = write(self, *arguments, **keywords)
        if doomed and after:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(of, name, killed)


def run_engine(path: Path, task: Task, budget: int, join: bool) -> None:
    repository = Repository.open(path) if path.exists() else Repository.create(path)
    settings = Settings(evaluations=budget, jobs=2, join=join)
    agents = [ScriptedAgent() for _ in range(3)]
    backend = InMemoryBackend(task, pause=0.002)
    asyncio.run(Run(repository, task, "r", settings, agents=agents, backend=backend).evolve())


POINTS = [
    ("Journal.append.RunStarted", 1),
    ("Journal.keep.", 1),
    ("Journal.append.Proposed", 1),
    ("Repository.plant.", 1),
    ("Journal.append.Evaluated", 1),
    ("Journal.append.Adopted", 2),
    ("Repository.commit.", 3),
    ("Journal.keep.", 5),
    ("Journal.append.Proposed", 4),
    ("Journal.append.Evaluated", 4),
    ("Journal.append.Adopted", 4),
    ("Repository.move_branch.", 6),
    ("Repository.write_notes.", 1),
    ("Journal.append.Stopped", 1),
]


class Forked:
    """A fork of this process, which saves half a second of imports each time: an engine, and what it said."""

    def __init__(self, program: Callable[[], None]) -> None:
        self._said = tempfile.TemporaryFile()  # noqa: SIM115  closed with the process
        self.returncode: int | None = None
        self.pid = os.fork()
        if not self.pid:
            code = 1
            try:
                os.dup2(self._said.fileno(), 2)
                program()
                code = 0
            except BaseException:
                os.write(2, traceback.format_exc().encode())
                raise
            finally:
                os._exit(code)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> str:
        """Wait for its end; what it said on stderr."""
        self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        with self._said as file:
            file.seek(0)
            return file.read().decode()


class Engine:
    """Starts engines as processes on one repository and task."""

    def __init__(self, folder: Path, task: Task) -> None:
        self.path = folder / "repo"
        self._task = task

    def start(self, budget: int, point: str = "", number: int = 0, after: str = "", join: str = "") -> Forked:
        def program() -> None:
            if point:
                die_around(point, number, after == "after")
            run_engine(self.path, self._task, budget, bool(join))

        return Forked(program)

    def finish(self, budget: int) -> History:
        engine = self.start(budget)
        errors = engine.wait()
        assert engine.returncode == 0, errors
        return self.history()

    def events(self) -> list[Event]:
        entries: list[Entry] = []
        if (self.path / ".git" / "evogit" / "created").exists():  # the last thing that makes it a repository of ours
            Repository.open(self.path).journal("r", entries.append)
        return [entry.event for entry in entries]

    def judged(self) -> int:
        return sum(isinstance(event, Evaluated) for event in self.events()) if self.path.exists() else 0

    def history(self) -> History:
        return StoredRun.open(Repository.open(self.path), "r").history


@pytest.fixture
def engine(tmp_path: Path, tiny: Callable[..., Task]) -> Engine:
    return Engine(tmp_path, tiny())


def check_whole(engine: Engine, before: list[Event], budget: int) -> None:
    """All that was recorded is there, nothing counts twice, the budget is reached, branches and Git are sound."""
    history, events = engine.finish(budget), engine.events()
    assert events[: len(before)] == before
    judged = [event.candidate for event in events if isinstance(event, Evaluated) and event.evaluation.split == "train"]
    assert len(judged) == len(set(judged)) == history.counts.evaluated == budget
    assert not history.pending
    assert sum(isinstance(event, Proposed) and event.operator == "seed" for event in events) == 1
    repository = Repository.open(engine.path)
    for agent, head in history.heads.items():
        assert repository.target(f"refs/heads/evogit/r/{agent}") == head
    assert repository.target("refs/heads/evogit/r/best") == history.best
    subprocess.run(["git", "fsck", "--strict", "--no-dangling"], cwd=engine.path, check=True, capture_output=True)
    status = subprocess.run(["git", "status", "--porcelain"], cwd=engine.path, check=True, capture_output=True)
    assert status.stdout == b""


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(("point", "number"), POINTS, ids=[f"{point}{number}" for point, number in POINTS])
def test_killed_at_a_named_write(engine: Engine, point: str, number: int, when: str) -> None:
    budget = 24  # in which each of these writes happens, whatever the moves are
    victim = engine.start(budget, point, number, when)
    errors = victim.wait()
    assert victim.returncode == -signal.SIGKILL, errors
    check_whole(engine, engine.events(), budget)


@pytest.mark.slow
def test_killed_again_and_again_at_random(engine: Engine) -> None:
    rng = random.Random(20)
    before: list[Event] = []
    for number in range(10):
        victim = engine.start(100_000)
        if number % 2 == 0:
            wait_until(lambda: engine.judged() > number)  # noqa: B023  used at once
        time.sleep(rng.uniform(0.01, 0.2))
        victim.kill()
        victim.wait()
        events = engine.events()
        assert events[: len(before)] == before
        before = events
    judged = engine.judged()
    assert judged > 8, "the engine got to work between the kills"
    check_whole(engine, before, judged + 10)


@pytest.mark.slow
def test_a_planted_stale_lock_does_not_stop_a_run(engine: Engine) -> None:
    engine.finish(3)
    host = Repository.open(engine.path).host
    for name in ("heads/evogit/r/a1", "heads/evogit/r/best", f"evogit/r/journal/{host}", f"evogit/r/keep/{host}"):
        (engine.path / ".git" / "refs" / f"{name}.lock").touch()
    assert engine.finish(6).counts.evaluated == 6


@pytest.mark.slow
def test_a_second_engine_is_refused_and_with_join_both_work(engine: Engine) -> None:
    first = engine.start(1_000_000)
    wait_until(lambda: any(isinstance(event, Adopted) for event in engine.events()))
    second = engine.start(1_000_000)
    errors = second.wait()
    assert second.returncode != 0
    assert "another engine" in errors
    assert "--join" in errors
    third = engine.start(1_000_000, join="join")
    wait_until(lambda: {"a1", "a4"} <= {event.agent for event in engine.events() if isinstance(event, Proposed)})
    for process in (first, third):
        process.kill()
        process.wait()
    starts = [event for event in engine.events() if isinstance(event, RunStarted)]
    assert [start.agents for start in starts] == [("a1", "a2", "a3"), ("a4", "a5", "a6")]


@pytest.mark.slow
def test_two_engines_share_one_budget(engine: Engine) -> None:
    first = engine.start(240)
    wait_until(lambda: any(isinstance(event, Adopted) for event in engine.events()))
    second = engine.start(240, join="join")
    assert [process.wait() for process in (first, second)] == ["", ""]
    history = engine.history()
    assert history.counts.evaluated == 240
    assert sum(isinstance(event, Stopped) for event in engine.events()) == 2
    assert len({candidate.agent for candidate in history.phylogeny}) == 7, "seed and both engines' agents had a part"
