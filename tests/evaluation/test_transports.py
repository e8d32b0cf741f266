"""Workers behind real transports, where these are installed: an ssh server and Ray nodes of our own.

Debian's `openssh-server` and EvoGit's extra `ray`. Nothing of the machine's own settings is read or changed: ports,
keys, sockets and logs are the tests' alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from evogit.config import load_task
from evogit.config.run_settings import AgentSpec, Settings, WorkerSpec
from evogit.core import UsageError
from evogit.evaluation.evaluator import Evaluator
from evogit.evaluation.workers.ray_worker import ray_command
from evogit.evaluation.workers.team import Team
from evogit.events import Entry, Evaluated
from evogit.repository import Repository
from evogit.run import Run
from tests.clock import until
from tests.conftest import EVALUATE, MakeTask, write_task

from .test_team import FILES, REAL

PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"

PRIVILEGE_SEPARATION = Path("/run/sshd")
"""An empty folder that an sshd of root insists on."""

SSHD = """
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/key.pub
PidFile none
PasswordAuthentication no
StrictModes no
UsePAM no
"""

KILLS = 3
EVALUATIONS = 24


def needs(*programs: str) -> pytest.MarkDecorator:
    lacking = [program for program in programs if not shutil.which(program, path=PATH)]
    return pytest.mark.skipif(bool(lacking), reason=f"{', '.join(lacking)} is not installed")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where servers live, whose sockets have short names; workers of this test keep what they have elsewhere."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="evogit-") as name:
        yield Path(name)


@contextlib.contextmanager
def over_ssh(folder: Path) -> Iterator[str]:
    for name in ("host_key", "key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    port = free_port()
    (folder / "sshd_config").write_text(SSHD.format(port=port, folder=folder))
    ours = os.getuid() == 0 and not PRIVILEGE_SEPARATION.exists()
    if ours:
        PRIVILEGE_SEPARATION.mkdir(mode=0o755)
    options = {"UserKnownHostsFile": folder / "known", "StrictHostKeyChecking": "accept-new", "BatchMode": "yes"}
    words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    try:
        with daemon(folder, "sshd", "-D", "-e", "-f", str(folder / "sshd_config")):
            wait_for(lambda: listens(port), folder)
            ssh = ["ssh", "-F", "none", "-p", str(port), "-i", str(folder / "key"), *words, "127.0.0.1"]
            yield shlex.join([*ssh, REAL])
    finally:
        if ours:
            PRIVILEGE_SEPARATION.rmdir()


@contextlib.contextmanager
def daemon(folder: Path, program: str, *arguments: str) -> Iterator[None]:
    command = ["setpriv", "--pdeathsig", "KILL", shutil.which(program, path=PATH) or program, *arguments]
    with (folder / f"{program}.out").open("wb") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_for(ready: Callable[[], object], folder: Path) -> None:
    deadline = time.monotonic() + 60
    while not ready():
        if time.monotonic() > deadline:
            raise TimeoutError("\n".join(file.read_text()[-500:] for file in folder.glob("*.out")))
        time.sleep(0.1)


@pytest.mark.slow
@needs("sshd", "ssh")
async def test_a_worker_behind_ssh_evaluates(folder: Path, tmp_path: Path) -> None:
    local = Evaluator(load_task(write_task(tmp_path / "task", evaluate=EVALUATE)), provider="none", jobs=1)
    with over_ssh(folder) as command:
        async with local, Team(local, [WorkerSpec(command, 1)], asked="none", jobs=0) as there:
            evaluation, _ = await there.evaluate("a" * 40, FILES, split="train")
    assert evaluation.ok


# --- Ray ----------------------------------------------------------------------------------------------------------


def has_a_worker(raylet: int) -> bool:
    """Return whether an actor on this node started a worker."""

    def children(process: str, what: str) -> list[str]:
        listing = ["ps", "--ppid", process, "-o", f"{what}="]
        return subprocess.run(listing, capture_output=True, text=True).stdout.splitlines()

    return any(
        "workers.main" in args for actor in children(str(raylet), "pid") for args in children(actor.strip(), "args")
    )


@pytest.mark.slow
@pytest.mark.usefixtures("own_cache")
@pytest.mark.skipif(not find_spec("ray"), reason="Ray is not installed")
@pytest.mark.filterwarnings("ignore")  # Ray's own
async def test_nodes_of_ray_that_are_lost_lose_nothing(tmp_path: Path, tiny: MakeTask) -> None:
    from ray.cluster_utils import Cluster

    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    there = [nodes.add_node(num_cpus=1, memory=8 << 30) for _ in range(1 + KILLS)]  # one worker has room on each
    struck = 0

    def strike() -> int:
        hit = next((node for node in there if has_a_worker(node.all_processes["raylet"][0].process.pid)), None)
        if hit is None:
            return 0
        there.remove(hit)
        nodes.remove_node(hit, allow_graceful=False)
        return 1

    slow = EVALUATE.replace("        y = ", "        time.sleep(0.2)\n        y = ")
    settings = Settings(
        population=(AgentSpec("mutator", count=4),),
        evaluations=EVALUATIONS,
        jobs=0,
        workers=(WorkerSpec.parse(f"ray:{nodes.address}:2"),),
        sandbox="none",
    )
    repository = Repository.create(tmp_path / "repo")
    run = Run(repository, tiny(evaluate=slow), "r", settings)
    try:
        async with asyncio.timeout(300), asyncio.TaskGroup() as group:
            evolving = group.create_task(run.evolve())
            while struck < KILLS:
                goal = 3 * struck
                await until(lambda goal=goal: run.history.counts.evaluated > goal, "that the run goes on")
                struck += await asyncio.to_thread(strike)
            stopped = await evolving
    finally:
        nodes.shutdown()
    assert stopped.reason == "evaluations"
    entries: list[Entry] = []
    repository.journal("r", entries.append)
    done = [entry.event for entry in entries if isinstance(entry.event, Evaluated)]
    assert all(event.evaluation.counts for event in done)
    times = Counter(event.candidate for event in done if event.evaluation.split == "train")
    assert set(times.values()) == {1}
    assert len(times) >= EVALUATIONS


@pytest.mark.skipif(bool(find_spec("ray")), reason="Ray is installed")
def test_the_extra_that_is_missing_is_named(tiny: MakeTask) -> None:
    with pytest.raises(UsageError, match=r"evogit\[ray\]"):
        ray_command("", tiny())


@pytest.mark.parametrize(
    ("text", "address", "jobs"),
    [
        ("ray", "", None),
        ("ray:4", "", 4),
        ("ray:10.0.0.1:6379", "10.0.0.1:6379", None),
        ("ray:head:6379:4", "head:6379", 4),
        ("ray:ray://head:10001:4", "ray://head:10001", 4),
        ("ray worker:4", None, 4),
        ("ssh slurm:gpu evogit worker", None, None),
    ],
)
def test_ray_clusters_are_named(text: str, address: str | None, jobs: int | None) -> None:
    spec = WorkerSpec.parse(text)
    assert (spec.ray, spec.jobs) == (address, jobs)


@pytest.mark.parametrize("text", ["slurm", "slurm:gpu", "slurm:gpu:8", "slurm:8", "sbatch", "sbatch:2"])
def test_queues_of_slurm_are_refused_with_the_srun_command(text: str) -> None:
    with pytest.raises(UsageError, match=r"--workers 'srun .* evogit worker:\d'"):
        WorkerSpec.parse(text)
