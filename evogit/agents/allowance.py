"""What a session of an agent may use of models: what its run may, and a limit of its own."""

from __future__ import annotations

from dataclasses import dataclass, replace

from evogit.llm import Account, Left, Limit, Model, SpendingLimitError, TokenUsage


@dataclass(slots=True)
class SessionAllowance:
    """The account of the move, with a limit of the session's own."""

    account: Account
    most: int
    used: int = 0

    def check(self) -> None:
        """Allow one more attempt.

        Raises:
            RunEndsError: the run ends.
            SpendingLimitError: a limit is reached, of the run or of the session.
        """
        if self.used >= self.most:
            raise SpendingLimitError(f"the session used its {self.most:,} tokens")
        self.account.check()

    def left(self) -> Left:
        """What may still be used."""
        left = self.account.left()
        return replace(left, tokens=min(self.most - self.used, left.tokens if left.tokens is not None else self.most))

    async def pause(self, seconds: float) -> None:
        """Wait so many seconds, or until the run ends."""
        await self.account.pause(seconds)

    def exhaust(self, limit: Limit) -> None:
        """Count what is left of a limit as used up: that of the run, unless the session's own was the less."""
        left = self.account.left().tokens
        if limit == "dollars" or (left is not None and left <= self.most - self.used):
            self.account.exhaust(limit)

    def charge(self, model: Model, usage: TokenUsage, failure: str = "") -> None:
        """Count one attempt."""
        self.used += usage.prompt + usage.completion
        self.account.charge(model, usage, failure)
