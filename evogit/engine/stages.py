"""Work in parts: the stages of a task, each from the best of the one before, and pauses in which a person looks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from evogit.config.run_settings import Settings
from evogit.config.values import Stage
from evogit.core import Adopted, Halted, ReviewAsked, StageBegun, StopReason
from evogit.engine.stop_request import StopRequest
from evogit.history.context import RunContext

LOOK_EVERY_S = 0.3


class Stages:
    """Begins one stage after the other, and asks for an end after the last; all but minutes is in the journal."""

    def __init__(self, context: RunContext, ask: Callable[[StopReason, str], None]) -> None:
        self._context = context
        self._ask = ask
        self._seen: StageBegun | None = None
        self._since = 0.0

    def look(self) -> None:
        """Begin what comes next if the present stage is over; agents go on from the best."""
        plan, history = self._context.task.plan, self._context.history
        if not plan or history.best is None:
            return
        now = history.stages[-1] if history.stages else None
        why = self._over(plan[min(now.number, len(plan)) - 1], now) if now else ""
        number = now.number + 1 if now else 1
        if now and not why:
            return
        if number > len(plan):
            self._ask("stages", f"stage {number - 1} is over: {why}")
            return
        stage, best = plan[number - 1], history.best
        event = StageBegun(
            engine=self._context.engine,
            number=number,
            of=len(plan),
            goal=stage.goal,
            until=stage.until,
            budget=stage.budget,
            why=why,
            best=best,
            evaluations=history.counts.evaluated,
            calls=history.spent.calls - history.spent.failed,
        )
        if self._context.journal.append(event, unless=lambda: len(history.stages) >= number):
            for agent in [each for each in history.heads if history.head(each) != best]:
                self._context.journal.append(Adopted(agent=agent, candidate=best))

    def _over(self, stage: Stage, began: StageBegun) -> str:
        """Why a stage is over; empty if it is not."""
        history, clock = self._context.history, asyncio.get_running_loop().time()
        if began != self._seen:
            self._seen, self._since = began, clock
        known = history.evaluation(history.best or "")
        if stage.until and known and known.ok and stage.reached(known):
            return stage.until
        used = {
            "evaluations": history.counts.evaluated - began.evaluations,
            "calls": history.spent.calls - history.spent.failed - began.calls,
            "minutes": (clock - self._since) / 60,
        }
        spent = (f"{limit:g} {name} are used up" for name, limit in stage.budget.items() if used[name] >= limit)
        return next(spent, "")


class Reviews:
    """Pauses after `review_every` evaluations (0: after each stage) until a person decides anything, or time is up."""

    def __init__(
        self, context: RunContext, settings: Settings, stopping: StopRequest, show: Callable[[str, str], None]
    ) -> None:
        self._context = context
        self._every = settings.review_every
        self._minutes = settings.review_minutes or 0.0
        self._stopping = stopping
        self._show = show
        self._one = asyncio.Lock()

    def _due(self) -> bool:
        history = self._context.history
        evaluations, stage = (history.review.evaluations, history.review.stage) if history.review else (0, 1)
        if self._every is None or self._stopping.over.is_set():
            return False
        return (
            len(history.stages) > stage if self._every == 0 else history.counts.evaluated - evaluations >= self._every
        )

    async def wait(self) -> None:
        """Wait if a review is due, for whatever comes first; what is under way goes on."""
        async with self._one:
            if not self._due():
                return
            history, engine, clock = self._context.history, self._context.engine, asyncio.get_running_loop().time
            began, decided = clock(), len(history.decisions)
            asked = ReviewAsked(
                engine=engine,
                best=history.best or "",
                stage=len(history.stages),
                evaluations=history.counts.evaluated,
                minutes=self._minutes,
            )
            self._context.journal.append(asked)
            self._show("review", "waiting for a person: `evogit guide` says what comes next")
            while len(history.decisions) == decided and not self._stopping.over.is_set():
                if self._minutes and clock() - began >= 60 * self._minutes:
                    break
                await asyncio.sleep(LOOK_EVERY_S)
            self._show("review", "")
            self._context.journal.append(Halted(engine=engine, reason="review", seconds=round(clock() - began, 1)))
