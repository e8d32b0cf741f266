"""The money of a run: what models were paid, journalled attempt by attempt, and hard limits on it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from msgspec import Struct, field
from msgspec.structs import replace

from evogit.core import StopReason, picodollars
from evogit.events import Reserved, Spent
from evogit.history.context import RunContext
from evogit.llm import Limit, Model, Reservation, RunEndsError, SpendingLimitError, TokenUsage
from evogit.llm.bounds import LEAST_REPLY, USUAL_PROMPT

LOOK_AGAIN = 0.5
"""Seconds between two looks at what other engines got back."""

LOST = "its engine ended before it was counted"
"""Why an attempt is charged all that was set aside for it, long after."""


class RunAccount(Struct, frozen=True):
    """Limits on dollars, tokens and calls of one run, over its whole history; None means no such limit.

    What an attempt may cost at most is set aside, in the journal, before it is sent: if that is not left, it is not
    sent. So no limit is exceeded, whatever is in flight here or in engines that joined, and an engine that is killed
    leaves behind what its attempts may have cost.
    Once `silent` is set no further attempt is allowed; what is left of a limit that is `exhausted` does not pay for
    one. `counted` is set whenever an attempt is charged, `show` is told what an agent waits for.
    """

    context: RunContext
    dollars: float | None = None
    tokens: int | None = None
    calls: int | None = None
    silent: asyncio.Event = field(default_factory=asyncio.Event)
    show: Callable[[str, str], None] = lambda agent, doing: None
    exhausted: set[Limit] = field(default_factory=set)
    counted: asyncio.Event = field(default_factory=asyncio.Event)

    def empty(self) -> StopReason | None:
        """The limit that is reached, None while something may be spent."""
        spent = self.context.history.spent
        if self.dollars is not None and ("dollars" in self.exhausted or spent.picodollars >= picodollars(self.dollars)):
            return "dollars"
        if self.tokens is not None and ("tokens" in self.exhausted or spent.tokens >= self.tokens):
            return "tokens"
        return "calls" if self.calls is not None and spent.charged >= self.calls else None

    def may_ask(self) -> bool:
        """Whether calls in flight leave room for another one: an agent waits instead of being refused."""
        return self.calls is None or self.context.history.committed().charged < self.calls

    def of_move(self, agent: str, move: int) -> MoveAccount:
        """What one move of an agent is charged to."""
        return MoveAccount(self, agent, move)

    # --- setting aside ------------------------------------------------------------------------------------------

    def limiting(self, model: Model) -> list[Limit]:
        """The limits that bound what a model is asked.

        Raises:
            SpendingLimitError: it has no price by which dollars could be counted.
        """
        limits: list[Limit] = ["calls"] * (self.calls is not None)
        limits += ["tokens"] * (self.tokens is not None)
        if self.dollars is None or (model.price and model.price.free):
            return limits
        if model.price is None:
            raise SpendingLimitError(f"the price of {model.name} is not known, so no limit on dollars can be kept")
        return [*limits, "dollars"]

    def affordable(self, limit: Limit, model: Model, worst: TokenUsage) -> int:
        """Up to how many tokens of a reply to such a question what is left pays for; below 0 if not for the prompt."""
        committed = self.context.history.committed()
        if limit == "calls":
            return worst.completion if self.may_ask() else -1
        if limit == "tokens":
            assert self.tokens is not None
            return min(worst.completion, self.tokens - committed.tokens - worst.prompt)
        assert self.dollars is not None
        assert model.price
        return model.price.reply_for(picodollars(self.dollars) - committed.picodollars, worst)

    def broken(self, event: Spent) -> Limit | None:
        """The limit that does not hold if an attempt cost so much, instead of what was set aside for it."""
        spending = self.context.history.committed(but=event.reserved)
        spending.add(event)
        if self.dollars is not None and spending.picodollars > picodollars(self.dollars):
            return "dollars"
        return "tokens" if self.tokens is not None and spending.tokens > self.tokens else None

    def in_flight(self) -> bool:
        """Whether an attempt is under way, here or in another engine, that may give back some of what it holds."""
        engines = {event.engine for event in self.context.history.reserved.values()}
        return self.context.engine in engines or bool(engines and engines & set(self._alive()))

    def _alive(self) -> list[str]:
        return self.context.repository.engines(self.context.history.run).alive()

    def settle_lost(self) -> None:
        """Charge all that engines of this clone had set aside when they died: it may have been billed."""
        context = self.context
        host = context.engine.rpartition("-")[0]
        reserved = {
            entry: event
            for entry, event in context.history.reserved.items()
            if event.engine != context.engine and event.engine.rpartition("-")[0] == host
        }
        alive = self._alive() if reserved else []
        for entry, event in reserved.items():
            if event.engine not in alive:
                lost = Spent(
                    engine=event.engine,
                    move=event.move,
                    agent=event.agent,
                    model=event.model,
                    prompt=event.prompt,
                    completion=event.completion,
                    dollars=event.dollars,
                    estimated=True,
                    failure=LOST,
                    reserved=entry,
                )
                context.journal.append(lost, unless=lambda: entry not in context.history.reserved)  # noqa: B023

    async def wait(self) -> None:
        """Wait until an attempt was charged, or it is time to look at other engines."""
        self.counted.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_AGAIN):
                await self.counted.wait()


class MoveAccount(Struct, frozen=True):
    """The `llm.Account` of one move; without `patient` an endpoint that is down is not waited for."""

    run: RunAccount
    agent: str
    move: int
    patient: bool = True

    def check(self) -> None:
        """Allow one more attempt, after a look at what engines that joined have spent meanwhile.

        Raises:
            RunEndsError: the run was asked to stop, or a limit of it is reached.
            SpendingLimitError: a limit on money or tokens is reached.
        """
        self.run.context.journal.refresh()
        if reached := self.run.empty():
            raise SpendingLimitError(f"the limit on {reached} is reached")
        if self.run.silent.is_set():
            raise RunEndsError("the run ends, so no model is asked again")

    async def reserve(self, model: Model, worst: TokenUsage) -> Reservation:
        """Set aside what one attempt may cost at most; its reply may have to be shorter.

        Raises:
            RunEndsError: the run was asked to stop, or a limit of it is reached.
            SpendingLimitError: what is left does not pay for a useful reply.
        """
        least = min(worst.completion, LEAST_REPLY)
        while True:
            self.check()
            limits = self.run.limiting(model)
            if not limits and model.price and model.price.free:
                return Reservation()
            self.run.settle_lost()
            if not limits:  # what is in flight is journalled all the same: a killed engine leaves behind what it cost
                return self._hold(model, worst, limits) or Reservation()
            reply, nearest = min((self.run.affordable(limit, model, worst), limit) for limit in limits)
            busy = self.run.in_flight()
            if reply >= (worst.completion if busy else least):
                if reservation := self._hold(model, replace(worst, completion=reply), limits):
                    return reservation
            elif not busy:
                if worst.prompt <= USUAL_PROMPT:
                    self.exhaust(nearest)
                raise SpendingLimitError(f"what is left of the limit on {nearest} does not pay for a question", nearest)
            else:
                await self.run.wait()

    def _hold(self, model: Model, worst: TokenUsage, limits: list[Limit]) -> Reservation | None:
        """Journal it, unless another engine was first and what is left is not enough any more."""

        def too_much() -> bool:
            return any(self.run.affordable(limit, model, worst) < worst.completion for limit in limits)

        event = Reserved(
            engine=self.run.context.engine,
            move=self.move,
            agent=self.agent,
            model=model.name,
            prompt=worst.prompt,
            completion=worst.completion,
            dollars=model.price.at_most(worst) if model.price else None,
        )
        entry = self.run.context.journal.append(event, unless=too_much)
        bounds = limits not in ([], ["calls"])  # a call is a call, however long its reply
        return Reservation(entry.id, worst, bounds=bounds) if entry else None

    async def pause(self, seconds: float) -> None:
        """Wait so many seconds, or until no further attempt is allowed."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.run.silent.wait()

    async def wait_out(self, model: Model, why: str, seconds: float) -> bool:
        """Wait for an endpoint that is down, which agents always do, or until no further attempt is allowed."""
        if not self.patient:
            return False
        self.run.show(self.agent, f"waiting for {model.name}: {why}")
        await self.pause(seconds)
        self.run.show(self.agent, f"asking {model.name} again")
        return True

    def exhaust(self, limit: Limit) -> None:
        """Count what the run has left of a limit as used up."""
        self.run.exhausted.add(limit)

    def charge(
        self, model: Model, usage: TokenUsage, failure: str = "", reservation: Reservation | None = None
    ) -> None:
        """Journal one attempt.

        An endpoint that counts more than was set aside is believed as far as what is left pays for it. Beyond that it
        is charged what was set aside, and what it counts is the end of the limit.
        """
        journal = self.run.context.journal
        spent = self._spent(model, usage, failure, reservation)
        broken = partial(self.run.broken, spent)
        worst = (reservation.worst if reservation and reservation.bounds else None) or usage
        exceeds = usage.prompt + usage.completion > worst.prompt + worst.completion
        exceeds |= model.price is not None and model.price.of(usage) > model.price.at_most(worst)
        if worst is usage or not exceeds:
            journal.append(spent)
        elif journal.append(spent, unless=lambda: broken() is not None) is None:
            if limit := broken():
                self.exhaust(limit)
            counted = f"the endpoint counts {usage.prompt + usage.completion:,} tokens, more than what is left pays for"
            journal.append(self._spent(model, replace(worst, estimated=True), failure or counted, reservation))
        self.run.counted.set()

    def _spent(self, model: Model, usage: TokenUsage, failure: str, reservation: Reservation | None) -> Spent:
        return Spent(
            engine=self.run.context.engine,
            move=self.move,
            agent=self.agent,
            model=model.name,
            prompt=usage.prompt,
            cached=usage.cached,
            completion=usage.completion,
            dollars=model.price.of(usage) if model.price else None,
            estimated=usage.estimated,
            failure=failure,
            reserved=reservation.entry if reservation else "",
            seconds=max(round(time.time() - reservation.made, 1), 0.0) if reservation else 0.0,
        )
