"""What an audit may spend on a model: one account, whose limit no question exceeds."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from msgspec.structs import replace

from evogit.llm import Limit, Model, Reservation, SpendingLimitError, TokenUsage

LEAST_REPLY = 1_000
"""Tokens of a reply below which no question is asked: none that attacks is shorter."""


@dataclass
class AuditAccount:
    """The `llm.Account` of an audit, which asks one question at a time. `dollars` None: no limit."""

    dollars: float | None = None
    spent: float = 0.0
    tokens: int = 0

    def check(self) -> None:
        """Allow one more attempt.

        Raises:
            SpendingLimitError: the limit is reached.
        """
        if self.dollars is not None and self.spent >= self.dollars:
            raise SpendingLimitError(f"the limit of ${self.dollars:g} is reached", "dollars")

    async def reserve(self, model: Model, worst: TokenUsage) -> Reservation:
        """Set aside what an attempt may cost at most; its reply may have to be shorter.

        Raises:
            SpendingLimitError: the price is not known, or what is left does not pay for a useful reply.
        """
        self.check()
        if self.dollars is None or (model.price and model.price.free):
            return Reservation()
        if model.price is None:
            raise SpendingLimitError(f"the price of {model.name} is not known, so no limit on dollars can be kept")
        left = round((self.dollars - self.spent) * 1e12)
        reply = model.price.reply_for(left, worst)
        if reply < min(worst.completion, LEAST_REPLY):
            raise SpendingLimitError(f"what is left of ${self.dollars:g} does not pay for a question", "dollars")
        return Reservation("audit", replace(worst, completion=reply))

    async def pause(self, seconds: float) -> None:
        """Wait before another attempt."""
        await asyncio.sleep(seconds)

    async def wait_out(self, model: Model, why: str, seconds: float) -> bool:
        """An audit waits for no endpoint that is down."""
        return False

    def exhaust(self, limit: Limit) -> None:
        """Ask no more."""
        self.spent = max(self.spent, self.dollars or 0.0)

    def charge(
        self, model: Model, usage: TokenUsage, failure: str = "", reservation: Reservation | None = None
    ) -> None:
        """Count one attempt; where the endpoint does not say what it took, all that was set aside."""
        usage = reservation.bound(usage) if reservation else usage
        self.tokens += usage.prompt + usage.completion
        self.spent += model.price.of(usage) if model.price else 0.0
