"""Tells all browsers what happens in a run, as it happens; one that does not keep up starts over."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from evogit.core import EvoGitError

LOOK = 0.05
"""Seconds between two looks at a run while nothing happens in it."""

EVERY = 0.2
"""Seconds from one delta to the next: of a quick run a browser is told in few pieces."""

HEARTBEAT = 15.0
"""Seconds after which a stream with no news says that it is there."""

MOST_WAITING = 100
"""Deltas that wait for one browser."""

Record = dict[str, Any]

RELOAD = b"event: reload\ndata: {}\n\n"

BEGIN = b"retry: 1000\n\n"
"""How soon a browser comes back, in milliseconds."""


class Live:
    """The listeners of one run; while there are any, it is looked at."""

    def __init__(self, news: Callable[[], Awaitable[list[Record]]]) -> None:
        """`news`: reads what came since, and tells it."""
        self._news = news
        self._listeners: set[asyncio.Queue[bytes | None]] = set()
        self._looking: asyncio.Task[None] | None = None

    @property
    def watched(self) -> bool:
        """Whether anybody listens."""
        return bool(self._listeners)

    async def events(self, missed: list[Record] | None) -> AsyncIterator[bytes]:
        """Server-sent events: what was missed (None: too much), then what comes, until the browser must start over."""
        queue: asyncio.Queue[bytes | None] = asyncio.Queue(MOST_WAITING)
        self._listeners.add(queue)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        try:
            yield BEGIN + (RELOAD if missed is None else b"".join(map(event, missed)))
            while True:
                try:
                    told = await asyncio.wait_for(queue.get(), HEARTBEAT)
                except TimeoutError:
                    yield b": still here\n\n"
                    continue
                if told is None:
                    yield RELOAD
                    return
                yield told
        finally:
            self._listeners.discard(queue)

    async def _look(self) -> None:
        try:
            while self._listeners:
                news = await self._news()
                for delta in news:
                    self._tell(event(delta))
                await asyncio.sleep(EVERY if news else LOOK)
        except EvoGitError:  # it was removed, or cannot be read any more: who asks anew is told
            pass
        finally:  # whatever it was that could not be read, nobody waits for news that do not come
            for queue in self._listeners:
                _start_over(queue)

    def _tell(self, told: bytes) -> None:
        for queue in self._listeners:
            if queue.full():  # it does not keep up
                _start_over(queue)
            else:
                queue.put_nowait(told)


def _start_over(queue: asyncio.Queue[bytes | None]) -> None:
    """Forget what waits, and end the stream."""
    while not queue.empty():
        queue.get_nowait()
    queue.put_nowait(None)


def event(delta: Record) -> bytes:
    """One delta as it goes over the stream."""
    data = json.dumps(delta, separators=(",", ":"), allow_nan=False)
    return f"event: delta\nid: {delta['position']}\ndata: {data}\n\n".encode()
