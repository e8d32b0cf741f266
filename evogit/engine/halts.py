"""The times in which an engine can do nothing, and goes on afterwards: a full disk, a machine that sleeps."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evogit.events import Halted
from evogit.repository import Journal
from evogit.repository.faults import WAIT_FOR_ROOM, has_room

ASLEEP = 30.0
"""Seconds without a beat of the heart after which a process was not just busy."""

BEAT_EVERY = 1.0
"""Seconds between two beats."""

LOOK_FOR_ROOM_EVERY = 1.0
"""Seconds between two attempts to write."""


def _wall() -> float:
    """Return seconds by a clock that counts while the machine sleeps, and that cannot be set."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Heartbeat:
    """A thread that only reads the clocks, so that it misses beats only while no thread can run.

    An event loop alone cannot tell a machine that slept, or a process that was stopped, from a long piece of work.
    """

    def __init__(self) -> None:
        self._beat = time.monotonic(), _wall()
        self._past = 0.0, 0.0
        self._over = threading.Event()
        self._lock = threading.Lock()
        threading.Thread(target=self._live, name="heartbeat", daemon=True).start()

    def _live(self) -> None:
        while not self._over.wait(BEAT_EVERY):
            with self._lock:
                self._past = self._asleep()
                self._beat = time.monotonic(), _wall()

    def _asleep(self) -> tuple[float, float]:
        awake, wall = time.monotonic() - self._beat[0], _wall() - self._beat[1]
        return (self._past[0] + awake, self._past[1] + wall) if wall > ASLEEP else self._past

    def asleep(self) -> float:
        """Return the seconds in which no thread of this process could run, until now, by the clock of event loops."""
        with self._lock:
            return self._asleep()[0]

    def slept(self) -> float:
        """Return the seconds of sleep that are over, by a clock that counts while the machine sleeps."""
        return self._past[1]

    def stop(self) -> None:
        """End the thread."""
        self._over.set()


class Halts:
    """Notices them, and journals each once it is over: `look` is called often, and `room` where a write fails.

    While there is no room everything waits, as nothing that was paid for may be lost for want of it.
    """

    def __init__(self, journal: Journal, engine: str, folder: Path) -> None:
        self._journal = journal
        self._engine = engine
        self._folder = folder
        self._heart: Heartbeat | None = None
        self._slept = 0.0
        self._full_since: float | None = None
        self._full_until = 0.0
        self._interrupted = False

    def look(self) -> None:
        """Journal what is over."""
        slept, before = self._heart.slept() if self._heart else 0.0, self._slept
        self._slept = slept
        if self._full_since is not None:
            seconds, self._full_since = self._full_until - self._full_since, None
            self._journal.append(Halted(engine=self._engine, reason="no-room", seconds=round(seconds, 1)))
        elif slept > before:
            self._journal.append(Halted(engine=self._engine, reason="asleep", seconds=round(slept - before, 1)))

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Have what is written meanwhile wait for room, and notice sleep."""
        token = WAIT_FOR_ROOM.set(self.room)
        self._heart = Heartbeat()
        try:
            yield
        finally:
            self._heart.stop()
            WAIT_FOR_ROOM.reset(token)

    def room(self, error: Exception) -> bool:
        """Wait a moment if a write failed for want of room, until somebody interrupts; whether to write again."""
        full = any(os.strerror(number) in str(error) for number in (errno.ENOSPC, errno.EDQUOT))
        if self._interrupted or not (full or not has_room(self._folder)):  # libgit2 does not always say why
            return False
        self._full_since = self._full_since or time.time()
        with self._interruptible():
            time.sleep(LOOK_FOR_ROOM_EVERY)
        self._full_until = time.time()
        return True

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Let signals that ask for an end raise at once: the event loop, which waits too, would not hear of them.

        Raises:
            KeyboardInterrupt: one came.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def interrupt(*_: object) -> None:
            self._interrupted = True
            raise KeyboardInterrupt

        before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


class AwakeLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock stands still while the machine sleeps or the process is stopped.

    So no reply and no evaluation that was under way is out of time when it goes on.
    """

    def __init__(self) -> None:
        self._heart = Heartbeat()
        super().__init__()

    def time(self) -> float:
        """Seconds awake."""
        return time.monotonic() - self._heart.asleep()

    def close(self) -> None:
        """Close it, and end its heartbeat."""
        self._heart.stop()
        super().close()
