"""What a session of an agent may use of models: what its run may, and a limit of its own."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field

from msgspec.structs import replace

from evogit.llm import Account, Limit, Model, Reservation, SpendingLimitError, TokenUsage
from evogit.llm.bounds import LEAST_REPLY

LOOK_AGAIN = 0.5
"""Seconds between two looks at whether the run goes on, while a question waits for others of its session."""


@dataclass(slots=True)
class SessionAllowance:
    """The account of the move, with a limit of the session's own on tokens, which is kept in the same way.

    What a question has at most is `held` until it is charged, so that questions in flight never exceed it together.
    """

    account: Account
    most: int
    used: int = 0
    held: int = 0
    _counted: asyncio.Event = field(default_factory=asyncio.Event)

    def check(self) -> None:
        """Allow one more attempt."""
        if self.used >= self.most:
            raise SpendingLimitError(f"the session used its {self.most:,} tokens")
        self.account.check()

    async def reserve(self, model: Model, worst: TokenUsage) -> Reservation:
        """Set aside what an attempt may take at most, of the session's tokens and of the run's."""
        reply = await self._room(worst)
        self.held += (held := worst.prompt + reply)
        try:
            reservation = await self.account.reserve(model, replace(worst, completion=reply))
        except BaseException:
            self._release(held)
            raise
        return replace(reservation, held=held, most=reply)

    async def _room(self, worst: TokenUsage) -> int:
        """Tokens of a reply that the session has left; waits for questions in flight where these may give some back."""
        least = min(worst.completion, LEAST_REPLY)
        while True:
            self.check()
            reply = min(worst.completion, self.most - self.used - self.held - worst.prompt)
            if reply >= (worst.completion if self.held else least):
                return reply
            if not self.held:
                raise SpendingLimitError(f"what is left of the session's {self.most:,} tokens is not enough to ask")
            self._counted.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_AGAIN):
                    await self._counted.wait()

    def _release(self, held: int) -> None:
        self.held -= held
        self._counted.set()

    async def pause(self, seconds: float) -> None:
        """Wait so many seconds, or until the run ends."""
        await self.account.pause(seconds)

    async def wait_out(self, model: Model, why: str, seconds: float) -> bool:
        """Wait for an endpoint that is down as the run does."""
        return await self.account.wait_out(model, why, seconds)

    def exhaust(self, limit: Limit) -> None:
        """Count what is left of a limit of the run as used up."""
        self.account.exhaust(limit)

    def charge(
        self, model: Model, usage: TokenUsage, failure: str = "", reservation: Reservation | None = None
    ) -> None:
        """Count one attempt; one whose tokens nobody told counts as what was held for it."""
        held = reservation.held if reservation else 0
        self.used += max(usage.prompt + usage.completion, held if usage.estimated else 0)
        self._release(held)
        self.account.charge(model, usage, failure, reservation)
