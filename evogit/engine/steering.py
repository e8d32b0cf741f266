"""What a running engine notices of people: their decisions, commits and wishes, within a second."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from evogit.engine.evaluations import Evaluations
from evogit.engine.halts import Halts
from evogit.engine.people_commits import People
from evogit.engine.projections import Projections
from evogit.history.context import RunContext

LOOK_EVERY = 0.3
"""Seconds between two looks."""


class Steering:
    """Looks at the repository again and again, also while all agents think or wait; `over` ends it.

    `look` is called after each look, for what else follows from what other engines journalled.
    """

    def __init__(
        self,
        context: RunContext,
        projections: Projections,
        evaluations: Evaluations,
        people: People,
        over: asyncio.Event,
        look: Callable[[], object],
    ) -> None:
        self.halts = Halts(context.journal, context.engine, context.repository.common)
        self._journal = context.journal
        self._projections = projections
        self._evaluations = evaluations
        self._over = over
        self._people = people
        self._look = look

    async def attend(self) -> None:
        """Until the run is over: take in what people journalled, show it, and evaluate what waits for any engine."""
        async with asyncio.TaskGroup() as group:
            while not self._over.is_set():
                self.halts.look()
                self._journal.refresh()
                self._people.look()
                self._people.consider()
                self._projections.follow()
                self._evaluations.give_up_pruned()
                self._look()
                group.create_task(self._evaluations.take_over())  # which may take long, and people must not wait for it
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_EVERY):
                        await self._over.wait()
