"""Workers behind real transports, where these are installed: an ssh server and a Slurm cluster of this test's own."""

from __future__ import annotations

import contextlib
import shlex
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchmarks.clusters import missing, slurm, ssh_server
from evogit.config import load_task
from evogit.config.run_settings import WorkerSpec
from evogit.evaluation.evaluator import Evaluator
from evogit.evaluation.team import Team
from tests.conftest import EVALUATE, write_task

from .test_team import FILES, REAL

pytestmark = pytest.mark.slow

SSH = pytest.mark.skipif(bool(lacks := missing("sshd", "ssh")), reason=lacks)
SLURM = pytest.mark.skipif(bool(lacks := missing("slurmctld", "slurmd", "munged", "srun")), reason=lacks)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where servers live, whose sockets have short names; workers of this test keep what they have elsewhere."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="evogit-") as name:
        yield Path(name)


@contextlib.contextmanager
def over_ssh(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with ssh_server(folder) as ssh:
        yield shlex.join([*ssh, REAL])


@contextlib.contextmanager
def over_srun(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with slurm(folder) as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        yield f"srun -n1 {REAL}"


@pytest.mark.parametrize(
    "transport", [pytest.param(over_ssh, marks=SSH, id="ssh"), pytest.param(over_srun, marks=SLURM, id="srun")]
)
async def test_a_worker_there_evaluates(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    transport: Callable[[Path, pytest.MonkeyPatch], contextlib.AbstractContextManager[str]],
) -> None:
    local = Evaluator(load_task(write_task(tmp_path / "task", evaluate=EVALUATE)), provider="none", jobs=1)
    with transport(folder, monkeypatch) as command:
        async with local, Team(local, [WorkerSpec(command, 1)], asked="none", jobs=0) as there:
            evaluation, _ = await there.evaluate("a" * 40, FILES, split="train")
    assert evaluation.ok
