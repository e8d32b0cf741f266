"""How far ahead of their evaluation candidates are made by agents that ask models."""

from __future__ import annotations

from math import ceil

from evogit.config.run_settings import Settings
from evogit.engine.evaluations import Evaluations
from evogit.engine.quota import Quota

HEADROOM = 3.0
"""How many times what is needed on average is made, as calls and evaluations do not take the same time always."""

WEIGHT = 0.1
"""Of the latest move in the average."""


class AskingAhead:
    """Lets agents that ask models begin, or has them wait while what they made would wait for its evaluation.

    Who asks later knows more. So that no place to evaluate is free for long, as many candidates are made, or wait, as
    evaluations end while one is made (Little's law: Little, 1961), thrice over, and one for each place that is free.
    Agents that ask no model never wait, nor does anybody beside them: they fill the places in any case.
    """

    def __init__(self, evaluations: Evaluations, quota: Quota, settings: Settings) -> None:
        self._evaluations = evaluations
        self._quota = quota
        self._applies = not settings.deterministic and all(spec.asks for spec in settings.population)
        self._ended_meanwhile: float | None = None

    def allow(self) -> bool:
        """Whether an agent may begin a move now."""
        room = self._evaluations.room
        if not self._applies or room is None or self._ended_meanwhile is None:
            return True
        needed = max(1, ceil(HEADROOM * self._ended_meanwhile))
        return self._quota.thinking < needed + room

    def learn(self, ended: int) -> None:
        """That so many evaluations ended while a candidate was made."""
        before = self._ended_meanwhile
        self._ended_meanwhile = ended if before is None else before + WEIGHT * (ended - before)
