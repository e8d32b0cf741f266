"""The money of a run: what models were paid, journalled attempt by attempt, and hard limits on it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field

from evogit.core import Spent, StopReason
from evogit.history.context import RunContext
from evogit.llm import Left, Limit, Model, RunEndsError, SpendingLimitError, TokenUsage


@dataclass(frozen=True, slots=True)
class RunAccount:
    """Limits on dollars and tokens of one run, over its whole history; None means no such limit.

    A limit is checked before every attempt, so it is exceeded at most by the attempts that are in flight. An attempt is
    journalled when it ends: an engine that is killed at once loses the account of those in flight, and of no others.
    Once `silent` is set no further attempt is allowed; what is left of a limit that is `exhausted`
    does not pay for one.
    """

    context: RunContext
    dollars: float | None = None
    tokens: int | None = None
    silent: asyncio.Event = field(default_factory=asyncio.Event)
    exhausted: set[Limit] = field(default_factory=set)

    def empty(self) -> StopReason | None:
        """The limit that is reached, None while something may be spent."""
        spent = self.context.history.spent
        if self.dollars is not None and ("dollars" in self.exhausted or spent.dollars >= self.dollars):
            return "dollars"
        full = self.tokens is not None and ("tokens" in self.exhausted or spent.tokens >= self.tokens)
        return "tokens" if full else None

    def left(self) -> Left:
        """What may still be spent, as far as this engine knows."""
        spent = self.context.history.spent
        return Left(
            dollars=None if self.dollars is None else max(0.0, self.dollars - spent.dollars),
            tokens=None if self.tokens is None else max(0, self.tokens - spent.tokens),
        )

    def of_move(self, agent: str, move: int) -> MoveAccount:
        """What one move of an agent is charged to."""
        return MoveAccount(self, agent, move)


@dataclass(frozen=True, slots=True)
class MoveAccount:
    """The `llm.Account` of one move."""

    run: RunAccount
    agent: str
    move: int

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

    def left(self) -> Left:
        """What the run may still spend."""
        return self.run.left()

    async def pause(self, seconds: float) -> None:
        """Wait so many seconds, or until no further attempt is allowed."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.run.silent.wait()

    def exhaust(self, limit: Limit) -> None:
        """Count what the run has left of a limit as used up."""
        self.run.exhausted.add(limit)

    def charge(self, model: Model, usage: TokenUsage, failure: str = "") -> None:
        """Journal one attempt."""
        self.run.context.journal.append(
            Spent(
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
            )
        )
