"""Keeps a run in step with the engines of other hosts, through a Git server, beside the loop that evolves."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Self

from evogit.core import Entry, EvoGitError, Halted, RepositoryError, Stopped, host_of
from evogit.engine.halts import ASLEEP
from evogit.engine.migrants import Migrants
from evogit.history.context import RunContext
from evogit.repository.objects import named_errors
from evogit.trust import UntrustedError

if TYPE_CHECKING:
    from evogit.repository.remote import Remote

logger = logging.getLogger(__name__)

PATIENCE = 60.0
"""Seconds that one fetch or push may take at first; each that takes longer doubles it, as a run may be large."""

MOST_PATIENCE = 3600.0

LONGEST_PAUSE = 300.0
"""Seconds between two attempts at most, while a server is away; the pause doubles from attempt to attempt."""

AT_THE_END = 30.0
"""Seconds that the last fetch and push may take each: somebody may wait for the end."""

AWAY = 30
"""Times the usual pause after which a host that nothing was heard of is taken for dead: others do what it had begun."""


class Exchange:
    """Fetches and pushes again and again from `async with` on, and once more at its end.

    Whatever fails is told by `show`, noted beside the refs, and journalled once it is over; the run goes on meanwhile.
    """

    def __init__(self, context: RunContext, remote: Remote, *, every: float, show: Callable[[str, str], None]) -> None:
        self._context = context
        self._remote = remote
        self._migrants: Migrants | None = None
        self._every = every
        self._show = show
        self._pause = every
        self._patience = PATIENCE
        self._failing: tuple[float, int, str] | None = None
        self._heard: dict[str, float] = {}
        self._ended: set[str] = set()
        self._began = time.monotonic()
        self._working: asyncio.Task[None] | None = None

    def admit_migrants(self, provider: str) -> None:
        """Evaluate from now on what hosts without the run's key claim to have, if there is a sandbox."""
        if provider == "none":
            logger.warning("candidates of hosts without the run's key are not evaluated, as there is no sandbox here")
        else:
            self._migrants = Migrants(self._context, self._remote)

    async def __aenter__(self) -> Self:
        self._context.journal.subscribe(self._hear)
        self._working = asyncio.create_task(self._attend())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._working
        self._working.cancel()
        await asyncio.wait([self._working])
        if not self._working.cancelled() and kind is None:
            self._working.result()  # which raises what ended it
        if kind is None or issubclass(kind, EvoGitError):
            self._patience, failing = min(self._patience, AT_THE_END), self._failing
            await self._once()
            # what is told of the end of a trouble goes, too; and a push that was ended may be at work there still
            if bool(failing) != bool(self._failing):
                await self._once()

    async def _attend(self) -> None:
        while True:
            await self._once()
            if self._migrants:
                with suppress(RepositoryError, UntrustedError, OSError), named_errors("what a host claims"):
                    await self._migrants.look()
            await asyncio.sleep(self._pause)

    async def _once(self) -> None:
        try:
            await self._remote.exchange(self._known, seconds=self._patience)
        except (RepositoryError, UntrustedError, OSError) as error:  # a full disk, perhaps
            self._failed(error)
        else:
            self._pause = self._every
            with suppress(RepositoryError, UntrustedError, OSError):  # damage of ours is for the engine to tell
                self._succeeded()

    def _known(self) -> Callable[[str], bool]:
        self._context.journal.refresh()
        return self._context.history.phylogeny.__contains__

    def _failed(self, error: Exception) -> None:
        since, tries, _ = self._failing or (time.time(), 0, "")
        self._failing = since, tries + 1, str(error)
        if isinstance(error.__cause__, TimeoutError):
            self._patience = min(2 * self._patience, MOST_PATIENCE)
        self._pause = min(self._every * 2 ** min(tries, 20), max(LONGEST_PAUSE, self._every))
        self._tell(f"goes on alone, asks again in {self._pause:.0f} s: {error}")

    def _succeeded(self) -> None:
        if self._failing is None:
            return
        since, tries, why = self._failing
        self._failing = None
        self._tell("")
        if tries > 1 or time.time() - since > ASLEEP:
            seconds = round(max(time.time() - since, 0.0), 1)
            engine = self._context.engine
            self._context.journal.append(Halted(engine=engine, reason="remote", seconds=seconds, detail=why))

    def _tell(self, doing: str) -> None:
        self._show(f"remote {self._remote.shown}", doing)

    # --- other hosts ----------------------------------------------------------------------------------------------

    def _hear(self, entry: Entry) -> None:
        self._heard[entry.host] = time.monotonic()
        if isinstance(entry.event, Stopped):
            self._ended.add(entry.event.engine)

    def busy(self, engine: str) -> bool:
        """Whether an engine of another host is at work, as far as this one can know; clocks of others play no part."""
        host = host_of(engine)
        if not host or host == self._context.repository.host or engine in self._ended:
            return False
        return time.monotonic() - self._heard.get(host, self._began) < AWAY * self._every
