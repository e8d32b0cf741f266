"""Work in parts: the stages of a task, each from the best of the one before, and pauses in which a person looks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec.structs import asdict

from evogit.config.run_settings import Settings
from evogit.config.values import Stage
from evogit.engine.stop_request import StopRequest
from evogit.events import Adopted, Decision, Halted, ReviewAsked, StageBegun
from evogit.history.context import RunContext

LOOK_EVERY_S = 0.3


class Stages:
    """Begins one stage after the other, and pauses for reviews: what was begun is in the journal, but for minutes."""

    def __init__(
        self, context: RunContext, settings: Settings, stopping: StopRequest, show: Callable[[str, str], None]
    ) -> None:
        self._context = context
        self._settings = settings
        self._stopping = stopping
        self._show = show
        self._reviewing = asyncio.Lock()
        self._seen: StageBegun | None = None
        self._since = 0.0

    def look(self) -> None:
        """Begin the next stage from the best if the present one is over, or end the run; do nothing in a pause."""
        plan, history = self._context.task.plan, self._context.history
        if not plan or history.best is None or history.paused:
            return
        began = history.stages[-1] if history.stages else None
        why = self._over(plan[min(began.number, len(plan)) - 1], began) if began else ""
        if began and not why:
            return
        number, best = len(history.stages) + 1, history.best
        if number > len(plan):
            self._stopping.ask("stages", f"the last one is over: {why}")
            return
        event = StageBegun(
            engine=self._context.engine,
            number=number,
            of=len(plan),
            **asdict(plan[number - 1]),
            why=why,
            best=best,
            evaluations=history.counts.evaluated,
            calls=history.spent.charged,
        )
        if self._context.journal.append(event, unless=lambda: len(history.stages) >= number):
            for agent in [each for each in history.heads if history.head(each) != best]:
                self._context.journal.append(Adopted(agent=agent, candidate=best))

    def _over(self, stage: Stage, began: StageBegun) -> str:
        """Return the reason for which a stage is over; "" if it is not."""
        history, clock = self._context.history, asyncio.get_running_loop().time()
        if began != self._seen:
            self._seen, self._since = began, clock
        known = history.evaluation(history.best or "")
        if stage.until and known and known.ok and stage.reached(known):
            return stage.until
        used = history.stage_use() | {"minutes": (clock - self._since) / 60}
        spent = (f"{limit:g} {name} are used up" for name, limit in stage.budget.items() if used[name] >= limit)
        return next(spent, "")

    def _due(self) -> bool:
        history, every = self._context.history, self._settings.review_every
        evaluations, stage = (history.review.evaluations, history.review.stage) if history.review else (0, 1)
        if every is None or self._stopping.over.is_set():
            return False
        return history.counts.evaluated - evaluations >= every if every else len(history.stages) > stage

    async def wait(self) -> None:
        """Wait for a person if a review is due here or in another engine: for a decision, the timeout or the end."""
        async with self._reviewing:
            history, engine, clock = self._context.history, self._context.engine, asyncio.get_running_loop().time
            event = ReviewAsked(
                engine=engine,
                best=history.best or "",
                stage=len(history.stages),
                evaluations=history.counts.evaluated,
                minutes=self._settings.review_minutes or 0.0,
            )
            if self._due():
                self._context.journal.append(event, unless=lambda: history.paused)
            if not (history.paused and history.review):
                return
            began, decided, minutes = clock(), self._decided(), history.review.minutes
            self._show("review", "waiting for a person: `evogit guide` says what comes next")
            while history.paused and self._decided() == decided and not self._stopping.over.is_set():
                if minutes and clock() - began >= 60 * minutes:
                    break
                await asyncio.sleep(LOOK_EVERY_S)
            self._show("review", "")
            self._since += clock() - began
            over = Halted(engine=engine, reason="review", seconds=round(clock() - began, 1))
            self._context.journal.append(over, unless=lambda: not history.paused)  # the engine that asked may be gone

    def _decided(self) -> int:
        """Count the decisions of people; the reviewer's refusals end no pause."""
        events = (entry.event for entry in self._context.history.decisions)
        return sum(isinstance(event, Decision) and event.kind != "refuse" for event in events)
