"""Engines of several hosts over one bare repository."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from benchmarks.engines import campaign
from evogit.config import Task
from evogit.config.run_settings import Settings
from evogit.repository import Repository
from evogit.run import Run
from evogit.testing import InMemoryBackend, RecordedRun, ScriptedAgent
from tests.cli.conftest import run_forked
from tests.clock import until
from tests.plain_git import git


@pytest.fixture
def server(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "-q", "--bare", tmp_path / "server.git"], check=True)
    return tmp_path / "server.git"


def host(tmp_path: Path, name: str, key: bytes = b"") -> Repository:
    repository = Repository.create(tmp_path / name)
    repository.name_clone(name)
    if key:
        repository.keys.keep("r", key)
    return repository


def run_of(repository: Repository, task: Task, server: Path, **settings: Any) -> Run:
    about = Settings(remote=str(server), sync_every=0.05, **settings)
    backend = InMemoryBackend(task, pause=0.02)
    backend.provider = "bubblewrap"  # no candidate is run
    return Run(repository, task, "r", about, agents=[ScriptedAgent()], backend=backend)


async def meet(repository: Repository, server: Path) -> None:
    """What `evogit run --remote` and `evogit sync` do first."""
    await repository.remote("r", str(server)).exchange(lambda: lambda commit: False, seconds=None)


async def test_a_server_that_is_away_holds_nothing_up_and_is_told(task: Task, tmp_path: Path, server: Path) -> None:
    ours = host(tmp_path, "alpha", b"k" * 32)
    run = run_of(ours, task, server, evaluations=500)
    evolving = asyncio.create_task(run.evolve())
    await until(lambda: ours.contact("r") and ours.contact("r").met)
    server.rename(away := tmp_path / "away")
    await until(lambda: ours.contact("r").tries >= 3)
    assert "does not appear to be a git repository" in ours.contact("r").why
    before = run.history.counts.evaluated
    await until(lambda: run.history.counts.evaluated > before)
    away.rename(server)
    await until(lambda: run.history.interruptions)
    [told] = run.history.interruptions
    assert (told.what, "does not appear to be a git repository" in told.why) == ("remote", True)
    run.stop()
    await evolving
    assert not ours.contact("r").failing


def forked(arguments: Sequence[str | Path], environment: Mapping[str, str]) -> str:
    """What a command says that runs in a fork of this process."""
    done = run_forked(arguments, cwd=Path.cwd(), env=environment)
    assert done.code == 0, done.err
    return done.out


@pytest.mark.slow
def test_four_engines_hold_the_same_although_one_dies_and_one_is_cut_off(tmp_path: Path) -> None:
    found = campaign(tmp_path, 6, 3, every=0.3, evaluation=0.5, forked=forked)
    assert len(set(found["living"])) == 1
    assert set(found["beta"]) == {found["pushed"]}
    assert len(set(found["all"])) == 1  # with what the dead one had not pushed
    assert found["decisions"] == 3
    assert all(found["evaluations"].values())
    assert [each["what"] for each in found["halts"]] == ["remote"]


async def test_what_a_host_without_the_key_has_is_evaluated_here_before_it_counts(
    task: Task, tmp_path: Path, server: Path
) -> None:
    """As is what one with the key did not sign, where that is asked for.

    What no agent could have proposed, here a file that is not editable, does not come at all.
    """
    ours = host(tmp_path, "alpha", b"k" * 32)
    for name, value in (("evogit.trustedSigners", "true"), ("gpg.ssh.allowedSignersFile", "allowed")):
        git(ours.path, "config", name, value)
    (ours.path / "allowed").touch()
    first = run_of(ours, task, server, evaluations=20)
    await first.evolve()
    seed = first.history.seed or ""
    stranger = await claimant(tmp_path, "stranger", b"x" * 32, task, server, seed)
    unsigned = await claimant(tmp_path, "unsigned", b"k" * 32, task, server, seed)
    claimed = stranger.add_files({"program.py": b"def value(x): return 20\n"}, seed, value=1e6, title="all is well")
    cheat = stranger.add_files({"other.py": b"\n"}, seed, value=1e9)
    known = unsigned.add_files({"program.py": b"def value(x): return 21\n"}, seed, value=1e7)
    for each in (stranger, unsigned):
        await meet(each.repository, server)
    again = run_of(ours, task, server)
    evolving, history = asyncio.create_task(again.evolve()), again.history

    trees = {
        claimed: stranger.repository.tree_of(claimed),
        cheat: stranger.repository.tree_of(cheat),
        known: unsigned.repository.tree_of(known),
    }

    def copy_of(commit: str) -> str:
        return history.trees.get(trees[commit], "")

    await until(lambda: all(copy_of(each) and history.judged(copy_of(each)) for each in (claimed, known)))
    again.stop()
    await evolving
    copied = history.phylogeny[copy_of(claimed)]
    assert (copied.agent, copied.parents, claimed in history.phylogeny) == ("human", (seed,), False)
    assert copied.title.startswith("migrant from stranger, ")
    assert [history.fitness(copy_of(each)) for each in (claimed, known)] == [
        score_of_tree_of(stranger.repository, claimed),
        score_of_tree_of(unsigned.repository, known),
    ]
    assert trees[cheat] not in history.trees


async def test_strangers_have_a_tenth_of_all_evaluations_and_none_without_a_sandbox(
    task: Task, tmp_path: Path, server: Path
) -> None:
    ours = host(tmp_path, "alpha", b"k" * 32)
    first = run_of(ours, task, server, evaluations=1)
    await first.evolve()
    seed = first.history.seed or ""
    for number in range(9):
        stranger = await claimant(tmp_path, f"stranger{number}", b"", task, server, seed)
        content = f"def value(x): return {20 + number}\n".encode()
        stranger.add_files({"program.py": content}, seed, value=1e6 + number)
        await meet(stranger.repository, server)

    async def migrants_after(evaluations: int, provider: str) -> int:
        run = run_of(ours, task, server, evaluations=evaluations)
        assert isinstance(run.backend, InMemoryBackend)
        run.backend.provider = provider
        await run.evolve()
        return len(run.history.human)

    assert await migrants_after(30, "none") == 0
    counted = [await migrants_after(total, "bubblewrap") for total in (60, 61, 62)]
    assert 0 < max(counted) <= 6


@pytest.mark.parametrize("kept", [False, True])
async def test_what_is_private_or_large_is_not_taken_from_a_stranger(
    task: Task, tmp_path: Path, server: Path, kept: bool
) -> None:
    """A push of 100 kB may hold gigabytes; and a hostile server may claim to have what it only knows by its id."""
    ours = host(tmp_path, "alpha", b"k" * 32)
    first = run_of(ours, task, server, evaluations=20)
    await first.evolve()
    seed = first.history.seed or ""
    tree = ours.trees.write(ours.tree_of(seed), {"program.py": b"def value(x): return 22\n"})
    private = ours.commit(tree, (seed,), author="ada", time=1_700_000_000, title="private", trailers={})
    stranger = await claimant(tmp_path, "stranger", b"", task, server, seed)
    if kept:
        git(ours.path, "branch", "private", private)
        git(stranger.repository.path, "fetch", "-q", str(ours.path), "private")  # as if the server lacked it
        stranger.journal.keep({}, private)
    stranger.propose(seed, candidate=private, tree=tree)
    stranger.evaluate(private, 1e9)
    large = stranger.add_files({"program.py": b"0" * (300 << 10)}, seed, value=1e8)
    theirs = stranger.add_files({"program.py": b"def value(x): return 20\n"}, seed, value=1e6)
    await meet(stranger.repository, server)
    again = run_of(ours, task, server)
    evolving, history = asyncio.create_task(again.evolve()), again.history
    await until(lambda: stranger.repository.tree_of(theirs) in history.trees)
    again.stop()
    await evolving
    assert not {tree, stranger.repository.tree_of(large)} & history.trees.keys()


async def test_a_ref_of_a_stranger_ends_no_engine(task: Task, tmp_path: Path, server: Path) -> None:
    ours = host(tmp_path, "alpha", b"k" * 32)
    run = run_of(ours, task, server)
    evolving = asyncio.create_task(run.evolve())
    await until(lambda: ours.contact("r") and ours.contact("r").met)
    tree = git(server, "hash-object", "-wt", "tree", "/dev/null").strip()
    command = ("hash-object", "-w", "-t", "commit", "--literally", "--stdin")
    commit = git(server, *command, input=f"tree {tree}\n\nx\n").strip()
    names = (b"refs/evogit/r/journal/evil", b"refs/evogit/r/journal/\xff", b"refs/evogit/r/keep/\xff")
    for name in names:
        subprocess.run([b"git", b"-C", bytes(server), b"update-ref", name, commit.encode()], check=True)
    await until(lambda: len(ours.contact("r").notes) == len(names) - 1)
    run.stop()
    await evolving
    assert git(server, "rev-parse", "refs/evogit/r/journal/alpha").strip() == ours.target("refs/evogit/r/journal/alpha")


async def claimant(tmp_path: Path, name: str, key: bytes, task: Task, server: Path, seed: str) -> RecordedRun:
    """A host that is about to say what it likes about candidates, and has the seed."""
    run = RecordedRun(host(tmp_path, name, key), "r", metrics=task.metrics)
    git(run.repository.path, "fetch", "-q", str(server), seed)
    run.propose(candidate=seed, tree=run.repository.tree_of(seed))
    return run


def score_of_tree_of(repository: Repository, commit: str) -> float:
    """What `InMemoryBackend` finds, whatever anybody claims."""
    return int(repository.tree_of(commit)[:6], 16) / 0x1000000


@pytest.mark.slow
async def test_git_may_be_killed_at_any_moment(task: Task, tmp_path: Path, server: Path) -> None:
    """Every other one is, as pauses grow with each that fails."""
    ours, rng, seen, killed = host(tmp_path, "alpha", b"k" * 32), random.Random(1), set[int](), 0
    run = run_of(ours, task, server)
    evolving = asyncio.create_task(run.evolve())
    while killed < 10:
        await asyncio.sleep(rng.uniform(0.0, 0.03))
        for process in set(gits()) - seen:
            seen.add(process)
            with suppress(ProcessLookupError):
                if rng.random() < 0.5:
                    await asyncio.sleep(rng.uniform(0.0, 0.02))
                    os.kill(process, signal.SIGKILL)
                    killed += 1
    await until(lambda: not ours.contact("r").failing)  # the server may be at work on a push that was killed here
    run.stop()
    await evolving
    tip = git(server, "rev-parse", "refs/evogit/r/journal/alpha").strip()
    assert tip == ours.target("refs/evogit/r/journal/alpha")
    assert run.history.counts.evaluated == len({each.commit for each in run.history.phylogeny}) > 1
    for folder in (server, ours.path):
        git(folder, "fsck", "--strict", "--no-dangling")
    assert not list((ours.common / "refs").rglob("*.lock"))


def gits() -> list[int]:
    """Processes called git that this one has started, and that talk to a server."""
    found = []
    for file in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):  # a thread, or a process, may have ended
            pids = file.read_text().split()
            lines = {int(pid): Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0") for pid in pids}
            found += [pid for pid, words in lines.items() if b"fetch" in words or b"push" in words]
    return found
