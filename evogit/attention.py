"""What a running engine notices of people: their decisions, commits and wishes, within a second."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from evogit.projections import Projections
from evogit.repository import Journal
from evogit.verdicts import Judge

LOOK_EVERY = 0.3
"""Seconds between two looks."""


class Attention:
    """Looks at the repository again and again, also while all agents think or wait."""

    def __init__(self, journal: Journal, projections: Projections, judge: Judge, over: Callable[[], bool]) -> None:
        self._journal, self._projections, self._judge, self._over = journal, projections, judge, over

    async def attend(self) -> None:
        """Until the run is over: take in what people journalled, show it, and judge what waits for anybody."""
        while not self._over():
            self._journal.refresh()
            self._projections.follow()
            await self._judge.take_over()
            await asyncio.sleep(LOOK_EVERY)
