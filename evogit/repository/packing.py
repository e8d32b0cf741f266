"""Packs loose objects beside the loop: they cost 36 kB a candidate, and packing takes a process and some seconds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from evogit.core import RepositoryError

PACK_EVERY = 2000
"""Candidates after which loose objects are packed."""


class Packer:
    """Calls `pack` whenever a run has grown enough, one call at a time."""

    def __init__(self, pack: Callable[[], Awaitable[None]], candidates: int) -> None:
        self._pack = pack
        self._rounds = candidates // PACK_EVERY
        self._packing: asyncio.Task[None] | None = None

    def grown(self, candidates: int) -> None:
        """Note how many candidates there are now."""
        idle = self._packing is None or self._packing.done()
        if idle and candidates // PACK_EVERY > self._rounds:
            self._rounds = candidates // PACK_EVERY
            self._packing = asyncio.create_task(self._quietly())

    async def finish(self) -> None:
        """Wait for what is being packed."""
        if self._packing is not None:
            await self._packing

    async def _quietly(self) -> None:
        """A failure (a person's `git gc` at work, say) costs room and no data, so the next round may do better."""
        with suppress(RepositoryError):
            await self._pack()
