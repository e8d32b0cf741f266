"""What a session of an agent may use of models: what its run may, and a limit of its own."""

from __future__ import annotations

from dataclasses import dataclass

from evogit.llm import Account, Limit, Model, Reservation, SpendingLimitError, TokenUsage


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
        self._check_own()
        self.account.check()

    def _check_own(self) -> None:
        if self.used >= self.most:
            raise SpendingLimitError(f"the session used its {self.most:,} tokens")

    async def reserve(self, model: Model, worst: TokenUsage) -> Reservation:
        """Set aside what an attempt may cost the run; the session's own limit is looked at before, not fitted to."""
        self._check_own()
        return await self.account.reserve(model, worst)

    async def pause(self, seconds: float) -> None:
        """Wait so many seconds, or until the run ends."""
        await self.account.pause(seconds)

    def exhaust(self, limit: Limit) -> None:
        """Count what is left of a limit of the run as used up."""
        self.account.exhaust(limit)

    def charge(
        self, model: Model, usage: TokenUsage, failure: str = "", reservation: Reservation | None = None
    ) -> None:
        """Count one attempt."""
        self.used += usage.prompt + usage.completion
        self.account.charge(model, usage, failure, reservation)
