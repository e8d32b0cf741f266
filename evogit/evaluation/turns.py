"""Lets evaluations begin: with others, or alone on a machine that is calm."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

LOOKS, EVERY = 10, 0.2
"""Number of looks at the load of the machine, and the seconds between two of them."""


class Door:
    """Lets any number in, or one alone, who waits until all are out while no other gets in."""

    def __init__(self) -> None:
        self._door = asyncio.Lock()
        self._inside = 0
        self._out = asyncio.Event()

    @contextlib.asynccontextmanager
    async def entered(self, *, alone: bool) -> AsyncIterator[None]:
        """The context of being inside."""
        async with self._door:
            while alone and self._inside:
                self._out.clear()
                await self._out.wait()
            if alone:
                yield
                return
            self._inside += 1
        try:
            yield
        finally:
            self._inside -= 1
            self._out.set()


async def calm(patience: float) -> None:
    """Return once no more tasks are ready to run than the machine has cores, or after `patience` seconds."""
    if not patience:
        return
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(patience):
            looks = [_running()]
            while len(looks) < LOOKS or sum(looks[-LOOKS:]) > LOOKS * (os.cpu_count() or 1):
                await asyncio.sleep(EVERY)
                looks.append(_running())


def _running() -> int:
    """Return how many tasks of this machine run or are ready to, this one left out; 0 where nothing tells."""
    try:
        return int(Path("/proc/loadavg").read_text().split()[3].partition("/")[0]) - 1
    except (OSError, IndexError, ValueError):
        return 0
