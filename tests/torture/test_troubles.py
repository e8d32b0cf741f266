"""Full and read-only disks, clocks that jump, suspension, people and engines at once, stops and starts."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from evogit.events import Decision, Halted, Stopped
from tests.clock import PATIENCE, wait_until

from .world import ENDLESS, World

pytestmark = pytest.mark.slow

MUTATORS = ("--agents", "3", "-j", "2")
DISK = 32 << 20  # bytes
HOUR = 3600
JUMPS = (3 * HOUR, -48 * HOUR, 9600 * HOUR, 0)  # seconds that the clock is off

Worlds = Callable[..., World]


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """A small disk with few inodes in the place of a folder."""
    folder.mkdir()
    options = f"size={DISK},nr_inodes=20k"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def hog_bytes(hog: Path) -> None:
    """Take all that is left of a disk."""
    with hog.open("ab", buffering=0) as file, suppress(OSError):
        for size in (1 << 20, 4096, 1):
            with suppress(OSError):
                while file.write(bytes(size)):
                    pass


def hog_inodes(hog: Path) -> None:
    """Take all files that a disk has room for, as a quota would."""
    hog.mkdir(exist_ok=True)
    with suppress(OSError):
        for number in range(20_000):
            (hog / str(number)).touch()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount a small disk")
def test_disks_that_are_full_or_read_only(world: Worlds, seed: int, long: bool) -> None:
    run, rng = world(*MUTATORS), random.Random(seed)
    with small_disk(run.repository):
        hog = run.repository / "hog"
        engine = run.begin(*ENDLESS)
        for number in range(10 if long else 2):
            run.work(engine)
            take = hog_bytes if number % 2 else hog_inodes
            for _ in range(4):
                take(hog)
                time.sleep(0.3)
            if rng.random() < 0.5:
                engine.kill()
                engine.wait()
            subprocess.run(["rm", "-rf", str(hog)], check=True)
            if engine.poll() is not None:
                engine = run.begin(*ENDLESS)
        run.work(engine)
        engine.kill()
        engine.wait()
        subprocess.run(["mount", "-o", "remount,ro", str(run.repository)], check=True)
        refused = run.begin(*ENDLESS)
        assert refused.wait(PATIENCE) == 1
        assert "Traceback" not in run.said()
        assert run.call("status")[0] == run.call("doctor", "runs")[0] == 0
        subprocess.run(["mount", "-o", "remount,rw", str(run.repository)], check=True)
        run.finish()


def test_suspended_stopped_and_started(world: Worlds, seed: int, long: bool) -> None:
    run, rng = world(*MUTATORS), random.Random(seed)
    stops = 50 if long else 1
    for number in range(stops):
        engine = run.begin(*ENDLESS)
        run.work(engine)
        if long and number == 1 or not long:
            suspend(run, engine.pid, 65.0 if long else 1.0)
            run.work(engine)
        time.sleep(rng.uniform(0, 0.3))
        engine.send_signal(rng.choice([signal.SIGINT, signal.SIGTERM, signal.SIGHUP]))
        assert engine.wait(PATIENCE) == 130, run.said()
    run.finish()
    events = run.events()
    assert sum(isinstance(event, Stopped) for event in events) == stops + 1
    assert any(isinstance(event, Halted) and event.reason == "asleep" for event in events) == long


def suspend(run: World, engine: int, seconds: float) -> None:
    """Have every process of a run stand still, and all at once go on."""
    living = [engine, *run.processes()]
    for number in (signal.SIGSTOP, signal.SIGCONT):
        for process in living:
            with suppress(ProcessLookupError):
                os.kill(process, number)
        if number == signal.SIGSTOP:
            time.sleep(seconds)


def test_two_engines_and_a_person_decide_at_once(world: Worlds, seed: int, long: bool) -> None:
    run, rng = world(*MUTATORS), random.Random(seed)
    engines = [run.begin(*ENDLESS)]
    run.work(engines[0], 4)
    engines.append(run.begin(*ENDLESS, "--join"))
    said = 0
    for _ in range(60 if long else 5):
        commits = [event.candidate for event in run.events() if hasattr(event, "candidate")][1:]
        act = rng.choice(["promote", "prune", "note"] if not said else ["promote", "prune", "note", "undo"])
        named = () if act == "undo" else (rng.choice(commits), "-m", "torture")
        code, _ = run.call(act, *named, *(["--yes"] if act in ("prune", "undo") else []))
        assert code in (0, 3, 4), "what cannot be is refused"
        said += code == 0
    assert said
    engines[0].kill()
    engines[0].wait()
    run.work(engines[1])
    assert run.call("stop")[0] == 0
    assert engines[1].wait(PATIENCE) == 0
    run.finish()
    assert sum(isinstance(event, Decision) and event.kind != "stop" for event in run.events()) == said


def test_clocks_that_jump(world: Worlds, long: bool) -> None:
    run = world(*MUTATORS)
    clock, library = run.folder / "clock", run.folder / "clock.so"
    source = Path(__file__).with_name("clock.c")
    subprocess.run(["gcc", "-shared", "-fPIC", "-O", "-o", str(library), str(source)], check=True)
    clock.write_text("0")
    engine = run.begin(*ENDLESS, LD_PRELOAD=str(library), CLOCK_OFFSET=str(clock))
    for jump in JUMPS * (10 if long else 1):
        run.work(engine, 1)
        (run.folder / "next").write_text(str(jump))
        (run.folder / "next").replace(clock)  # in one step: nobody reads an empty file
    run.work(engine)
    engine.kill()
    engine.wait()
    wait_until(lambda: not run.processes(), "the end of what the engine had started")
    run.finish()
