"""The account of a command that asks a model beside any run; no question exceeds its limit."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from msgspec.structs import replace

from evogit.llm import Limit, Model, Reservation, SpendingLimitError, TokenUsage
from evogit.llm.bounds import LEAST_REPLY

MAX_PAUSE_S = 20.0  # the wait between two attempts, whatever the endpoint asks for


@dataclass
class CommandAccount:
    """The `llm.Account` of a command, which asks one question at a time; `dollars` None means no limit."""

    dollars: float | None = None
    spent: float = 0.0
    tokens: int = 0
    attempts: int = 0
    exhausted: bool = False

    def check(self) -> None:
        """Allow one more attempt. Raises SpendingLimitError: the limit is reached."""
        if self.exhausted or (self.dollars is not None and self.spent >= self.dollars):
            raise SpendingLimitError(f"the limit of ${self.dollars:g} is reached", "dollars")

    async def reserve(self, model: Model, worst: TokenUsage) -> Reservation:
        """Set aside what an attempt may cost at most. Raises SpendingLimitError: no price, or too little is left."""
        if self.dollars is None or (model.price and model.price.free):
            return Reservation()
        self.check()
        if model.price is None:
            raise SpendingLimitError(f"the price of {model.name} is not known, so no limit on dollars can be kept")
        left = round((self.dollars - self.spent) * 1e12)
        reply = model.price.reply_for(left, worst)
        if reply < min(worst.completion, LEAST_REPLY):
            raise SpendingLimitError(f"what is left of ${self.dollars:g} does not pay for a question", "dollars")
        return Reservation("command", replace(worst, completion=reply))

    async def pause(self, seconds: float) -> None:
        """Wait before another attempt, but not as long as runs do."""
        await asyncio.sleep(min(seconds, MAX_PAUSE_S))

    async def wait_out(self, model: Model, why: str, seconds: float) -> bool:
        """Give up a question whose endpoint is down."""
        return False

    def exhaust(self, limit: Limit) -> None:
        """Allow no more attempts."""
        self.exhausted = True

    def charge(
        self, model: Model, usage: TokenUsage, failure: str = "", reservation: Reservation | None = None
    ) -> None:
        """Count one attempt; where the endpoint does not say what it took, all that was set aside."""
        usage = reservation.bound(usage, failure) if reservation else usage
        self.attempts += 1
        self.tokens += usage.prompt + usage.completion
        self.spent += model.price.of(usage) if model.price else 0.0

    def __str__(self) -> str:
        """What was asked, in words."""
        spent = f", ${self.spent:.2f}" if self.spent else ""
        return f"questions sent: {self.attempts}, {self.tokens:,} tokens{spent}"
