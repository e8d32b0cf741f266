"""Drives an engine in a thread of its own: for scripts, for notebooks, and for whoever takes its events one by one."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Self

from evogit.events import Entry, Event, Stopped

logger = logging.getLogger(__name__)

SHORTLY = 0.001
"""Seconds between two looks whether the thread has begun."""

STOPPING = "stopping: what has begun is waited for, 30 s at most; Ctrl-C again stops at once"


class Driver:
    """An event loop in a thread, in which a run evolves while the caller waits; a context manager.

    It needs no loop of the caller's and disturbs none, so it works in scripts, in notebooks and below a running loop.
    Ctrl-C while the caller waits asks for a clean stop; a second one breaks off at once. Whoever leaves early, by
    `break` or by an error of their own, has the run stop cleanly.

    What both threads use is whole wherever Ctrl-C interrupts the caller's: flags, a deque, and queues written in C. The
    locks of `threading` and of `queue.Queue` are taken in Python: interrupted in between, one stays locked for ever.
    """

    def __init__(
        self, evolve: Callable[[], Coroutine[Any, Any, Stopped]], stop: Callable[[], None], *, in_step: bool = False
    ) -> None:
        """`evolve` is what is driven, `stop` asks it for a clean end; both are called in the loop's thread.

        With `in_step` the loop waits at each event that it hears until the next one is asked for.
        """
        self._evolve = evolve
        self._stop = stop
        self._in_step = in_step
        self._told: deque[Event | None] = deque()
        self._news: SimpleQueue[None] = SimpleQueue()
        self._turns: SimpleQueue[None] = SimpleQueue()
        self._asked = False
        self._evolving: asyncio.Task[Stopped] | None = None
        self._has_begun = self._has_ended = False
        work = contextvars.copy_context()
        self._thread = threading.Thread(target=work.run, args=(self._work,), name="evogit", daemon=True)

    def __enter__(self) -> Self:
        self.begin()
        return self

    def begin(self) -> None:
        """Begin, unless that was done before."""
        if self._thread.ident is None:
            self._thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Have the run end and wait for that."""
        self._in_step = False
        self._turns.put(None)
        if isinstance(error, KeyboardInterrupt) and self._asked:
            self._soon(self._break_off)
        self.stop()
        self._look(lambda: self._has_ended)

    def hear(self, entry: Entry) -> None:
        """Subscribe this to the run's journal."""
        self._tell(entry.event)
        if self._in_step:
            self._turns.get()

    def events(self) -> Iterator[Event]:
        """The events, each as it happens; the run goes on when the next one is asked for.

        Raises:
            EvoGitError: what ended the run, after its last event.
        """
        while True:
            self._look(lambda: bool(self._told))
            if (event := self._told.popleft()) is None:
                break
            yield event
            self._turns.put(None)
        self.wait()

    def wait(self) -> Stopped:
        """How the run ended, once it has.

        Raises:
            EvoGitError: what ended it.
            KeyboardInterrupt: it was broken off.
        """
        self._look(lambda: self._has_ended)
        assert self._evolving  # it has begun
        if self._evolving.cancelled():
            raise KeyboardInterrupt
        return self._evolving.result()

    def stop(self) -> None:
        """Ask for a clean end."""
        self._asked = True
        self._soon(self._stop)

    # --- the caller's thread --------------------------------------------------------------------------------------

    def _look(self, is_so: Callable[[], bool]) -> None:
        """Wait until something is so, of which there will be news; interrupted once it asks for a clean end."""
        while not is_so():
            try:
                self._news.get()
            except KeyboardInterrupt:
                if self._asked:
                    self._soon(self._break_off)
                    continue
                self.stop()
                self._soon(lambda: logger.warning(STOPPING))

    def _soon(self, act: Callable[[], None]) -> None:
        while not self._has_begun:
            time.sleep(SHORTLY)
        with suppress(RuntimeError):  # the loop is closed: it ended by itself
            self._loop.call_soon_threadsafe(act)

    # --- the loop's thread ----------------------------------------------------------------------------------------

    def _work(self) -> None:
        try:
            asyncio.run(self._attend())
        finally:
            self._has_ended = True
            self._tell(None)

    def _tell(self, event: Event | None) -> None:
        self._told.append(event)
        self._news.put(None)

    async def _attend(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._evolving = asyncio.create_task(self._evolve())
        self._has_begun = True
        await asyncio.wait([self._evolving])

    def _break_off(self) -> None:
        if self._evolving:
            self._evolving.cancel()
