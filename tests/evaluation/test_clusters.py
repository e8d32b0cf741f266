"""Workers of clusters: jobs that call, submitted by a person or to a Slurm cluster, and actors of Ray on two nodes."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from msgspec.structs import replace

from benchmarks.clusters import missing, slurm
from evogit.config import Task, load_task
from evogit.config.run_settings import AgentSpec, Settings, WorkerSpec
from evogit.core import Entry, Evaluated, UsageError
from evogit.evaluation.clusters.cluster import EXTRAS, Cluster, Needs
from evogit.evaluation.clusters.switchboard import Switchboard
from evogit.evaluation.evaluator import Evaluator
from evogit.evaluation.team import Team
from evogit.repository import Repository
from evogit.run import Run
from tests.clock import until
from tests.conftest import EVALUATE, write_task

from .test_team import FILES

SLURM = missing("slurmctld", "slurmd", "munged", "sbatch") or "submitit is not installed" * (not find_spec("submitit"))
RAY = "Ray is not installed" * (not find_spec("ray"))

KILLS = 3
EVALUATIONS = 24


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Evaluator:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Evaluator(load_task(write_task(tmp_path / "task", evaluate=EVALUATE)), provider="none", jobs=1)


@pytest.fixture
def folder() -> Iterator[Path]:
    """For what has sockets, whose names are short."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="evogit-") as name:
        yield Path(name)


# --- jobs that a person submits ------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_jobs_that_a_person_submits(local: Evaluator, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def told() -> list[str]:
        return re.findall(r"waiting for a job of yours, `sbatch (\S+)`", caplog.text)

    async def by_hand() -> subprocess.Popen[bytes]:
        await until(lambda: len(told()) == 2, "that two are waited for")
        return subprocess.Popen(["sh", told()[0]])

    submitting = asyncio.create_task(by_hand())
    async with local, Team(local, [WorkerSpec.parse("sbatch:2")], asked="none", jobs=0) as there:
        evaluation, _ = await there.evaluate("a" * 40, FILES, split="train")
        text = Path(told()[0]).read_text()
    assert evaluation.ok
    assert "#SBATCH --cpus-per-task=1\n#SBATCH --mem=1792M\n" in text
    assert (await submitting).wait() == 0, "it ends with the run"
    assert not list((tmp_path / "cache" / "evogit" / "jobs").iterdir()), "nothing is left behind"


async def test_nobody_without_the_key_is_taken_for_a_worker(tmp_path: Path) -> None:
    switchboard = Switchboard()
    async with switchboard.opened(tmp_path) as call_file, switchboard.awaited(1) as coming:
        about = json.loads(call_file.read_text())
        stranger = tmp_path / "stranger.json"
        stranger.write_text(json.dumps({**about, "hosts": ["127.0.0.1"], "key": "00" * 32}))
        words = (sys.executable, "-P", "-m", "evogit.evaluation.clusters.calling", str(stranger))
        calling = await asyncio.create_subprocess_exec(*words, stderr=subprocess.PIPE)
        _, said = await calling.communicate()
        assert not coming.done()
    assert b"the run does not want this worker" in said


# --- jobs of Slurm, and actors of Ray, that are lost ------------------------------------------------------------------


async def spent(tmp_path: Path, task: Task, workers: str, strike: Callable[[], bool]) -> Counter[str]:
    """A run on these workers alone, struck after every few evaluations; how often each candidate was evaluated."""
    repository = Repository.create(tmp_path / "repo")
    population = (AgentSpec("mutator", count=4),)
    evaluations = EVALUATIONS
    specs = (WorkerSpec.parse(workers),)
    settings = Settings(population=population, evaluations=evaluations, jobs=0, workers=specs, sandbox="none")
    run, struck = Run(repository, task, "r", settings), 0

    def goes_on() -> bool:
        return run.history.counts.evaluated > 3 * struck

    async def storm() -> None:
        nonlocal struck
        while struck < KILLS:
            await until(goes_on, "that the run goes on")
            struck += await asyncio.to_thread(strike)

    storming = asyncio.create_task(storm())
    stopped = await run.evolve()
    storming.cancel()
    assert stopped.reason == "evaluations"
    assert struck == KILLS
    entries: list[Entry] = []
    repository.journal("r", entries.append)
    done = [entry.event for entry in entries if isinstance(entry.event, Evaluated)]
    assert all(event.evaluation.counts for event in done)
    return Counter(event.candidate for event in done if event.evaluation.split == "train")


@pytest.mark.slow
@pytest.mark.skipif(bool(SLURM), reason=SLURM)
async def test_jobs_of_slurm_that_are_killed_lose_nothing(
    tmp_path: Path, folder: Path, tiny: Callable[..., Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with slurm(folder) as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)

        def running() -> list[str]:
            listing = ["squeue", "--noheader", "--states=RUNNING", "--format=%i"]
            return subprocess.run(listing, capture_output=True, text=True).stdout.split()

        def strike() -> bool:
            return any(subprocess.run(["scancel", "--full", "--signal=KILL", job]).returncode == 0 for job in running())

        times = await spent(tmp_path, tiny(), "slurm:main:2", strike)
        assert not running(), "none stays in the queue"
    assert set(times.values()) == {1}
    assert len(times) >= EVALUATIONS


def has_a_worker(raylet: int) -> bool:
    """Whether an actor on this node has one."""

    def children(process: str, what: str) -> list[str]:
        listing = ["ps", "--ppid", process, "-o", f"{what}="]
        return subprocess.run(listing, capture_output=True, text=True).stdout.splitlines()

    return any(
        "worker_main" in args for actor in children(str(raylet), "pid") for args in children(actor.strip(), "args")
    )


@pytest.mark.slow
@pytest.mark.skipif(bool(RAY), reason=RAY)
@pytest.mark.filterwarnings("ignore")  # Ray's own
async def test_nodes_of_ray_that_are_lost_lose_nothing(
    tmp_path: Path, tiny: Callable[..., Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    from ray.cluster_utils import Cluster as Nodes

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    nodes = Nodes(initialize_head=True, head_node_args={"num_cpus": 0})
    there = [nodes.add_node(num_cpus=1, memory=8 << 30) for _ in range(1 + KILLS)]  # one worker has room on each

    def strike() -> bool:
        hit = next((node for node in there if has_a_worker(node.all_processes["raylet"][0].process.pid)), None)
        if hit:
            there.remove(hit)
            nodes.remove_node(hit, allow_graceful=False)
        return bool(hit)

    try:
        slow = EVALUATE.replace("        y = ", "        time.sleep(0.2)\n        y = ")
        times = await spent(tmp_path, tiny(evaluate=slow), f"ray:{nodes.address}:2", strike)
    finally:
        nodes.shutdown()
    assert set(times.values()) == {1}
    assert len(times) >= EVALUATIONS


# --- what a person says ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "cluster", "jobs"),
    [
        ("slurm:gpu", ("slurm", "gpu"), None),
        ("slurm:gpu:8", ("slurm", "gpu"), 8),
        ("slurm:8", ("slurm", ""), 8),
        ("sbatch:2", ("sbatch", ""), 2),
        ("ray", ("ray", ""), None),
        ("ray:4", ("ray", ""), 4),
        ("ray:10.0.0.1:6379", ("ray", "10.0.0.1:6379"), None),
        ("ray:head:6379:4", ("ray", "head:6379"), 4),
        ("ray:ray://head:10001:4", ("ray", "ray://head:10001"), 4),
        ("ray worker:4", None, 4),
        ("ssh slurm:gpu evogit worker", None, None),
    ],
)
def test_clusters_are_named(text: str, cluster: tuple[str, str] | None, jobs: int | None) -> None:
    spec = WorkerSpec.parse(text)
    assert (spec.cluster, spec.jobs) == (cluster, jobs)


@pytest.mark.parametrize("kind", EXTRAS)
def test_an_extra_that_is_missing_is_named(kind: str, tiny: Callable[..., Task]) -> None:
    if find_spec(EXTRAS[kind]):
        assert Cluster(kind, "", tiny())
    else:
        with pytest.raises(UsageError, match=rf"pip install 'evogit\[{kind}\]'"):
            Cluster(kind, "", tiny())


def test_places_are_as_large_as_evaluations(tiny: Callable[..., Task]) -> None:
    task = tiny()
    wanted = replace(task.environment, cpus=2.5, gpus=1, exclusive=True)
    needs = Needs.of(replace(task, environment=wanted, limits=replace(task.limits, memory=5 << 30, disk=1 << 30)))
    assert needs == Needs(cpus=4, memory=7 << 30, gpus=1, exclusive=True)
