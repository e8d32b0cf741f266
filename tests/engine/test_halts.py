"""What holds an engine up and passes: a full disk, a machine that sleeps."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import threading
import time
from pathlib import Path

import pygit2
import pytest

from evogit.core import RepositoryError
from evogit.engine import halts
from evogit.engine.halts import AwakeLoop, Halts
from evogit.events import Halted
from evogit.repository import faults
from evogit.repository.faults import written
from evogit.testing import RecordedRun
from tests.clock import stop_this_process, wait_until


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RecordedRun:
    monkeypatch.setattr(halts, "LOOK_FOR_ROOM_EVERY", 0.01)
    return RecordedRun(tmp_path / "repo")


def repo(run: RecordedRun) -> pygit2.Repository:
    return pygit2.Repository(str(run.repository.path))


def halted(run: RecordedRun) -> list[Halted]:
    return [entry.event for entry in run.entries if isinstance(entry.event, Halted)]


def test_what_is_written_to_a_full_disk_waits_for_room_and_the_journal_tells(run: RecordedRun) -> None:
    noticed, tries = Halts(run.journal, "e", run.repository.common), iter(range(7))

    def write() -> str:
        if next(tries) < 6:  # more often than anything else is tried
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return "written"

    with noticed.waiting():
        assert written("it", repo(run), write) == "written"
    noticed.look()
    noticed.look()
    [event] = halted(run)
    assert (event.reason, event.engine) == ("no-room", "e")


def test_what_seemed_to_be_written_to_a_full_disk_is_written_again(
    run: RecordedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    noticed, writes = Halts(run.journal, "e", run.repository.common), list[int]()

    def write() -> None:  # libgit2 raises nothing, and has written nothing
        writes.append(len(writes))
        monkeypatch.setattr(faults, "ROOM", 1 << 60 if len(writes) < 3 else 0)

    with noticed.waiting():
        written("it", repo(run), write)
    assert len(writes) == 3
    monkeypatch.setattr(faults, "ROOM", 1 << 60)
    with pytest.raises(RepositoryError, match="No space left on device; make room"):  # a command, which does not wait
        written("it", repo(run), lambda: None)


def test_a_person_may_interrupt_the_wait_for_room(run: RecordedRun) -> None:
    noticed = Halts(run.journal, "e", run.repository.common)

    def write() -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def ask(*_: object) -> None:
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGTERM)).start()

    before = signal.signal(signal.SIGTERM, ask)  # who comes between two waits asks again
    try:
        ask()
        with noticed.waiting(), pytest.raises(KeyboardInterrupt):
            written("it", repo(run), write)
    finally:
        signal.signal(signal.SIGTERM, before)
    with noticed.waiting(), pytest.raises(Exception, match="make room"):  # and nothing waits from then on
        written("it", repo(run), write)


def test_other_failures_to_write_are_not_waited_for(run: RecordedRun) -> None:
    noticed = Halts(run.journal, "e", run.repository.common)

    def write() -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    with noticed.waiting(), pytest.raises(Exception, match="Permission denied"):
        written("it", repo(run), write)
    noticed.look()
    assert halted(run) == []


@pytest.fixture
def light(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sleep that is noticed after half a second."""
    monkeypatch.setattr(halts, "ASLEEP", 0.5)
    monkeypatch.setattr(halts, "BEAT_EVERY", 0.01)


@pytest.mark.usefixtures("light")
def test_a_process_that_was_stopped_is_journalled_once(run: RecordedRun) -> None:
    noticed = Halts(run.journal, "e", run.repository.common)
    with noticed.waiting():
        stop_this_process(1.0)
        wait_until(lambda: (noticed.look(), halted(run))[1])
        noticed.look()
    [event] = halted(run)
    assert event.reason == "asleep"
    assert event.seconds >= 0.9


@pytest.mark.usefixtures("light")
def test_work_that_takes_long_is_not_journalled_as_sleep(run: RecordedRun) -> None:
    noticed = Halts(run.journal, "e", run.repository.common)
    with noticed.waiting():
        noticed.look()
        time.sleep(1.0)  # the event loop is at something else
        noticed.look()
    assert halted(run) == []


@pytest.mark.slow
@pytest.mark.usefixtures("light")
def test_nothing_is_out_of_time_when_the_machine_wakes() -> None:
    async def wait() -> None:
        async with asyncio.timeout(0.4):
            await asyncio.sleep(0.01)
            stop_this_process(1.0)
            await asyncio.sleep(0.05)

    with asyncio.Runner(loop_factory=AwakeLoop) as runner:
        runner.run(wait())
    with pytest.raises(TimeoutError):
        asyncio.run(wait())


@pytest.mark.usefixtures("light")
def test_what_is_long_while_awake_is_out_of_time() -> None:
    async def wait() -> None:
        async with asyncio.timeout(0.3):
            time.sleep(0.7)  # noqa: ASYNC251  work of its own
            await asyncio.Event().wait()

    with asyncio.Runner(loop_factory=AwakeLoop) as runner, pytest.raises(TimeoutError):
        runner.run(wait())
