"""What was done and what it cost, counted entry by entry."""

from __future__ import annotations

from dataclasses import dataclass

from evogit.core import Spent


@dataclass(slots=True)
class Counts:
    """How much was done. `evaluated` counts candidates judged on the run's split, failed and cached ones included."""

    evaluated: int = 0
    failed: int = 0
    cached: int = 0
    duplicates: int = 0
    failed_proposals: int = 0
    proposed: int = 0

    @property
    def proposals(self) -> int:
        """All attempts of the agents, usable or not; the seed is not one."""
        return self.proposed + self.duplicates + self.failed_proposals


@dataclass(slots=True)
class Spending:
    """What was asked of models: attempts (`failed` brought no reply), tokens, and dollars where prices are known."""

    calls: int = 0
    failed: int = 0
    prompt: int = 0
    cached: int = 0
    completion: int = 0
    dollars: float = 0.0
    unpriced: int = 0
    """Calls of models whose price nobody knew."""

    @property
    def tokens(self) -> int:
        """Of prompts and completions together."""
        return self.prompt + self.completion

    def add(self, event: Spent) -> None:
        """Count one more attempt."""
        self.calls += 1
        self.failed += bool(event.failure)
        self.prompt += event.prompt
        self.cached += event.cached
        self.completion += event.completion
        self.dollars += event.dollars or 0.0
        self.unpriced += event.dollars is None
