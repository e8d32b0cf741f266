"""A run whose remote workers, and what leads to them, are killed all the time: nothing is lost or counted twice."""

from __future__ import annotations

import asyncio
import os
import random
import shlex
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from evogit.config import Task
from evogit.config.run_settings import AgentSpec, Settings, WorkerSpec
from evogit.core import Entry, Evaluated
from evogit.repository import Repository
from evogit.run import Run

WORKER = shlex.join([sys.executable, "-c", "from evogit.cli import main; main()", "worker"])
TRANSPORT = WorkerSpec(f"sh -c {shlex.quote(f'{WORKER}; exit $?')}", 2)
"""A shell that stays, as ssh would, with a worker below it."""

EVALUATIONS = 40
KILLS = 12


def below(parent: int) -> Iterator[int]:
    """The processes that a process has started."""
    with suppress(OSError):
        yield from map(int, Path(f"/proc/{parent}/task/{parent}/children").read_text().split())


def transports_and_workers() -> list[int]:
    shells = [pid for pid in below(os.getpid()) if name(pid) == "sh"]
    return [*shells, *(worker for shell in shells for worker in below(shell))]


def name(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


@pytest.mark.slow
async def test_killed_workers_lose_nothing(
    tmp_path: Path, tiny: Callable[..., Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("XDG_CACHE_HOME", "TMPDIR"):
        (tmp_path / variable).mkdir()
        monkeypatch.setenv(variable, str(tmp_path / variable))
    repository = Repository.create(tmp_path / "repo")
    settings = Settings(
        population=(AgentSpec("mutator", count=4),),
        evaluations=EVALUATIONS,
        jobs=0,
        workers=(TRANSPORT, TRANSPORT),
        sandbox="none",
    )
    run, rng, killed = Run(repository, tiny(), "r", settings), random.Random(1), 0

    async def kill() -> None:
        nonlocal killed
        while killed < KILLS:
            await asyncio.sleep(rng.uniform(0.1, 0.4))
            if run.history.counts.evaluated and (living := transports_and_workers()):
                with suppress(ProcessLookupError):
                    os.kill(rng.choice(living), signal.SIGKILL)
                    killed += 1

    killing = asyncio.create_task(kill())
    stopped = await run.evolve()
    killing.cancel()
    assert (stopped.reason, killed > 0) == ("evaluations", True)
    entries: list[Entry] = []
    repository.journal("r", entries.append)
    done = [entry.event for entry in entries if isinstance(entry.event, Evaluated)]
    times = Counter(event.candidate for event in done if event.evaluation.split == "train")
    assert set(times.values()) == {1}, "each once"
    assert len(times) >= EVALUATIONS
    assert all(event.evaluation.counts for event in done)
    assert not run.history.pending
    assert not transports_and_workers(), "nothing is left behind"
