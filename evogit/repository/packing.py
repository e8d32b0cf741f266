"""Packs loose objects beside the loop: they cost 36 kB a candidate, and packing takes a process and some seconds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

from evogit.core import RepositoryError

PACK_EVERY = 2000
"""Candidates after which loose objects are packed."""

PAUSE = 60.0
"""Seconds at least between two packs. After thousands of files are removed ext4 makes new ones slowly for half a
minute, so a run of very cheap candidates that packed all the time would be slow all the time."""


class Packer:
    """Calls `pack` whenever a run has grown enough, one call at a time."""

    def __init__(self, pack: Callable[[], Awaitable[None]], candidates: int) -> None:
        self._pack = pack
        self._rounds = candidates // PACK_EVERY
        self._began = time.monotonic()
        self._packing: asyncio.Task[None] | None = None

    def grown(self, candidates: int) -> None:
        """Note how many candidates there are now."""
        idle = self._packing is None or self._packing.done()
        if idle and self._due(candidates) and time.monotonic() - self._began >= PAUSE:
            self._packing = asyncio.create_task(self._quietly(candidates))

    async def finish(self, candidates: int) -> None:
        """Wait for what is being packed, and pack what is left to."""
        if self._packing is not None:
            await self._packing
        if self._due(candidates):
            await self._quietly(candidates)

    def _due(self, candidates: int) -> bool:
        return candidates // PACK_EVERY > self._rounds

    async def _quietly(self, candidates: int) -> None:
        """A failure (a person's `git gc` at work, say) costs room and no data, so the next round may do better."""
        self._rounds, self._began = candidates // PACK_EVERY, time.monotonic()
        with suppress(RepositoryError):
            await self._pack()
