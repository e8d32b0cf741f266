"""Packs loose objects beside the loop: they cost 36 kB a candidate, and packing takes a process and some seconds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from evogit.core import RepositoryError

if TYPE_CHECKING:
    import asyncio

PACK_EVERY = 10_000
"""Candidates after which loose objects are packed while a run goes on: 360 MB. Not more often, since ext4 makes new
files up to ten times slower for minutes after thousands were removed (docs/design/engine.md)."""

PACK_AT_END = 2_000
"""Candidates for which a pack is worth the wait when an engine stops."""

MANY_PACKS = 20
"""Packs of a repository beyond which small ones are put together."""


class Packer:
    """Calls `pack` whenever a run has grown enough, one call at a time."""

    def __init__(self, pack: Callable[[], Awaitable[None]], candidates: int) -> None:
        self._pack = pack
        self._packed = candidates
        self._packing: asyncio.Task[None] | None = None

    def grown(self, candidates: int) -> None:
        """Note how many candidates there are now."""
        import asyncio  # which takes a while to load, and reading needs none of it

        idle = self._packing is None or self._packing.done()
        if idle and candidates - self._packed >= PACK_EVERY:
            self._packing = asyncio.create_task(self._quietly(candidates))

    async def finish(self, candidates: int) -> None:
        """Wait for what is being packed, and pack what is left to."""
        if self._packing is not None:
            await self._packing
        if candidates - self._packed >= PACK_AT_END:
            await self._quietly(candidates)

    async def _quietly(self, candidates: int) -> None:
        """A failure (a person's `git gc` at work, say) costs room and no data, so the next round may do better."""
        self._packed = candidates
        with suppress(RepositoryError):
            await self._pack()
