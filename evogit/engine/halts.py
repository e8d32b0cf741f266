"""The times in which an engine can do nothing, and goes on afterwards: a full disk, a machine that sleeps."""

from __future__ import annotations

import asyncio
import errno
import os
import selectors
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
"""Seconds beyond what was to be waited for, after which a process was not just busy."""

LOOK_FOR_ROOM_EVERY = 1.0
"""Seconds between two attempts to write."""


class Halts:
    """Notices them, and journals each once it is over: `look` is called often, and `room` where a write fails.

    Before the first `look`, as while the seed is evaluated, nothing tells a long wait from sleep.
    While there is no room everything waits, as nothing that was paid for may be lost for want of it.
    """

    def __init__(self, journal: Journal, engine: str, folder: Path) -> None:
        self._journal = journal
        self._engine = engine
        self._folder = folder
        self._seen: float | None = None
        self._full_since: float | None = None
        self._full_until = 0.0
        self._interrupted = False

    def look(self) -> None:
        """Journal what is over."""
        now = time.time()
        seen, self._seen = now if self._seen is None else self._seen, now
        if self._full_since is not None:
            seconds, self._full_since = self._full_until - self._full_since, None
            self._journal.append(Halted(engine=self._engine, reason="no-room", seconds=round(seconds, 1)))
        elif now - seen > ASLEEP:
            self._journal.append(Halted(engine=self._engine, reason="asleep", seconds=round(now - seen, 1)))

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Have what is written meanwhile wait for room."""
        token = WAIT_FOR_ROOM.set(self.room)
        try:
            yield
        finally:
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
        self._selector_of_awake = _Selector()
        self._asleep = 0.0
        self._looked = time.monotonic()
        super().__init__(self._selector_of_awake)

    def time(self) -> float:
        """Seconds awake."""
        now = time.monotonic()
        longer = now - self._looked - self._selector_of_awake.waited()
        self._looked = now
        if longer > ASLEEP:
            self._asleep += longer
        return now - self._asleep


class _Selector(selectors.DefaultSelector):
    """What an event loop waits with, which knows how long it meant to."""

    def __init__(self) -> None:
        super().__init__()
        self._meant = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """What is ready; None waits for as long as it takes."""
        began = time.monotonic()
        ready = super().select(timeout)
        spent = time.monotonic() - began
        self._meant += spent if timeout is None else min(spent, timeout)
        return ready

    def waited(self) -> float:
        """Seconds that were meant to be waited since this was asked last."""
        meant, self._meant = self._meant, 0.0
        return meant
