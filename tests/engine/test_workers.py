"""A run whose remote workers, and what leads to them, are killed all the time: nothing is lost or counted twice."""

from __future__ import annotations

import asyncio
import os
import random
import shlex
import signal
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from evogit.config import Task
from evogit.config.run_settings import AgentSpec, Settings, WorkerSpec
from evogit.core import Entry, Evaluated
from evogit.repository import Repository
from evogit.run import Run
from tests.clock import wait_until

WORKER = shlex.join([sys.executable, "-c", "from evogit.cli import main; main()", "worker"])
TRANSPORT = WorkerSpec(f"sh -c {shlex.quote(f'{WORKER}; exit $?')}", 2)
"""A shell that stays, as ssh would, with a worker below it."""

EVALUATIONS = 80
KILLS = 12


def transports_and_workers(folder: Path) -> list[int]:
    """The shells that this process has started, and the workers, which are in folders of their own below this one."""
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    found = [int(pid) for pid in children if told(pid, "comm") == "sh"]
    return found + [int(pid) for pid in filter(str.isdigit, os.listdir("/proc")) if is_below(pid, folder)]  # noqa: PTH208


def told(pid: str, what: str) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/{what}").read_text().strip()
    return ""


def is_below(pid: str, folder: Path) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cwd").readlink().is_relative_to(folder)
    return False


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
            await asyncio.sleep(rng.uniform(0.05, 0.3))
            if run.history.counts.evaluated and (living := transports_and_workers(tmp_path)):
                with suppress(ProcessLookupError):
                    os.kill(rng.choice(living), signal.SIGKILL)
                    killed += 1

    killing = asyncio.create_task(kill())
    stopped = await run.evolve()
    killing.cancel()
    assert stopped.reason == "evaluations"
    assert killed >= KILLS / 2
    entries: list[Entry] = []
    repository.journal("r", entries.append)
    done = [entry.event for entry in entries if isinstance(entry.event, Evaluated)]
    times = Counter(event.candidate for event in done if event.evaluation.split == "train")
    assert set(times.values()) == {1}, "each once"
    assert len(times) >= EVALUATIONS
    assert all(event.evaluation.counts for event in done)
    assert not run.history.pending
    wait_until(lambda: not transports_and_workers(tmp_path), "that nothing is left behind")
