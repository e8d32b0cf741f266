"""Keeps a run in step with engines of other hosts, through a Git server, alongside the loop that evolves.

Candidates that hosts without the run's key claim are evaluated here before they count.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from types import TracebackType
from typing import Self

from evogit.core import HUMAN, EvoGitError, RefusedError, RepositoryError, host_of
from evogit.engine.halts import ASLEEP
from evogit.engine.people_commits import Adding
from evogit.events import Entry, Evaluated, Halted, Stopped
from evogit.history.context import RunContext, StoredRun
from evogit.repository.objects import named_errors
from evogit.repository.remote import Remote, Stranger
from evogit.sandbox.providers import isolates
from evogit.trust import UntrustedError

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

STRANGERS_AT_ONCE = 8
"""Hosts whose claims are looked at after one exchange at most; each may cost an evaluation here."""
STRANGERS_SHARE = 0.1
"""Of all evaluations those that strangers may take up, or they could use up a limit by claims alone."""
CLAIMS_TRIED = 3
"""Claims of one host that are looked at after one exchange, the highest ones, until one is fit to be added."""
MAX_CLAIM_BYTES = 256 << 10
"""Bytes of the files that a claimed candidate changes: they are searched for credentials while the engine waits."""
MIGRANT_TITLE = "migrant from "
"""The beginning of the titles of such candidates, by which they are counted."""


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
        if not isolates(provider):
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
        def known() -> Callable[[str], bool]:
            self._context.journal.refresh()
            return self._context.history.phylogeny.__contains__

        try:
            await self._remote.exchange(known, seconds=self._patience)
        except (RepositoryError, UntrustedError, OSError) as error:  # a full disk, perhaps
            self._failed(error)
        else:
            self._pause = self._every
            with suppress(RepositoryError, UntrustedError, OSError):  # damage of ours is for the engine to tell
                self._succeeded()

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


@dataclass(slots=True)
class Migrants:
    """Adds the best that each stranger claims to have: its files, as a commit of ours, as `evogit add` would.

    A claim only says what to look at first; one that is no better than an earlier one of that host is not looked at.
    """

    run: StoredRun
    remote: Remote
    _claimed: dict[str, float] = field(default_factory=dict)
    _looked: set[str] = field(default_factory=set)
    _refused: set[str] = field(default_factory=set)

    async def look(self) -> None:
        """Add what is new, with a turn for everything else before each claim."""
        if self.run.history.seed is None or not self.run.journal.key or not self._has_room():
            return
        for stranger in islice(self.remote.strangers(self._looked), STRANGERS_AT_ONCE):
            if not self._has_room():
                break
            self._looked.add(stranger.tip)
            claims = {claim for event in stranger.events if (claim := self._claim(stranger, event))}
            for worth, commit in sorted(claims, reverse=True)[:CLAIMS_TRIED]:
                await asyncio.sleep(0)
                if self._add(stranger.host, worth, commit):
                    break

    def _has_room(self) -> bool:
        """Return whether one more stays within the strangers' share, now or in earlier engines of the run."""
        history = self.run.history
        migrants = sum(history.phylogeny[each].title.startswith(MIGRANT_TITLE) for each in history.human)
        return migrants < STRANGERS_SHARE * history.counts.evaluated - 1

    def _claim(self, stranger: Stranger, event: object) -> tuple[float, str] | None:
        """Return the claimed fitness of a candidate, larger is better; None if it cannot be a candidate here.

        A commit that its host does not keep may be any of this clone's, and a secret.
        """
        history = self.run.history
        if not isinstance(event, Evaluated) or event.candidate in self._refused or event.candidate in history.phylogeny:
            return None
        value = event.evaluation.metrics.get(history.metric.name, math.nan)
        ranks = event.evaluation.ok and event.evaluation.split == history.split and event.evaluation.repeat == 0
        if not ranks or not math.isfinite(value) or event.candidate not in stranger.held:
            return None
        if self.run.repository.tree_if_there(event.candidate) is None:
            return None
        return (value if history.metric.direction == "maximize" else -value), event.candidate

    def _add(self, host: str, worth: float, commit: str) -> bool:
        """Have a candidate evaluated, if it is said to be better than the last, and an agent could have proposed it."""
        adding = Adding(self.run, MAX_CLAIM_BYTES)
        if worth <= self._claimed.get(host, -math.inf):
            return False
        value = worth if self.run.history.metric.direction == "maximize" else -worth
        try:
            adding.check(commit)
            if self.run.repository.is_own(commit):
                raise RefusedError("a branch, tag or stash of this clone has it, so it may be private")
            if adding.known(commit):
                return False
            own = self._copied(commit, f"{MIGRANT_TITLE}{host}, said to be {value:.10g}")
            if not adding.add(own, f"said to be {value:.10g} by {host}, whose journal does not count here"):
                return False
        except (RefusedError, RepositoryError):
            self._refused.add(commit)
            return False
        self._claimed[host] = worth
        return True

    def _copied(self, commit: str, title: str) -> str:
        """Return a commit with the same files on the candidates before it, without the rest of its past."""
        history, repository = self.run.history, self.run.repository
        parents = tuple(each for each in repository.branches.parents(commit) if each in history.phylogeny)[:2]
        return repository.commit(
            repository.tree_of(commit),
            parents or (history.seed or "",),
            author=HUMAN,
            time=int(time.time()),
            title=title,
            trailers={"Agent": HUMAN, "Operator": "human"},
        )
