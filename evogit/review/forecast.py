"""What a run will come to if it goes on as it does: when it reaches a limit, and what it will have cost by then."""

from __future__ import annotations

from collections import deque
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from evogit.config.run_settings import RunLimits, Total
from evogit.core import Entry, Evaluated, RunStarted
from evogit.history import History
from evogit.history.context import StoredRun
from evogit.review.spending import last_limits, used

REMEMBERED = 200
"""Evaluations over which the pace is measured, at most."""

FEWEST = 5
"""Evaluations below which nothing is forecast."""


class Sample(NamedTuple):
    """What was used at a time, in seconds since the epoch."""

    time: float
    evaluations: float
    proposals: float
    tokens: float
    dollars: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The limit that a run reaches first, in how many seconds, and the dollars that it will have cost by then.

    These are None where no model was paid, or no price is known.
    """

    limit: str
    seconds: float
    dollars: float | None


class Pace:
    """How fast the engine at work goes, from its last evaluations."""

    def __init__(self, history: History) -> None:
        """`history` takes each entry in before this does."""
        self._history = history
        self._samples: deque[Sample] = deque(maxlen=REMEMBERED)
        self._evaluated = 0

    def take(self, entry: Entry) -> None:
        """Take in one more entry."""
        if isinstance(entry.event, RunStarted):
            self._samples.clear()
        if isinstance(entry.event, Evaluated) and self._history.counts.evaluated > self._evaluated:
            self._evaluated = self._history.counts.evaluated
            self._samples.append(self._sample(entry.time + entry.ms / 1000))

    def _sample(self, time: float) -> Sample:
        counts, spent = self._history.counts, self._history.spent
        return Sample(time, counts.evaluated, counts.proposals, spent.tokens, spent.dollars)

    def per_second(self, what: Total, now: float) -> float:
        """How much of it is used in a second; 0 while too little is known."""
        if len(self._samples) < FEWEST:
            return 0.0
        first, last = self._samples[0], self._sample(now)
        gained: float = getattr(last, what) - getattr(first, what)
        return gained / max(now - first.time, 0.001)

    def forecast(self, limits: RunLimits, began: float, now: float) -> Forecast | None:
        """What an engine that `began` at a time will come to; None where no limit ends it, or nothing is known yet."""
        ends: list[tuple[float, str]] = []
        for what, most in limits.totals.items():
            rate = self.per_second(what, now)
            if most is not None and rate > 0:
                ends.append((max(most - used(self._history, what), 0) / rate, what))
        if limits.minutes is not None and len(self._samples) >= FEWEST:
            ends.append((max(began + 60 * limits.minutes - now, 0.0), "minutes"))
        if not ends:
            return None
        seconds, limit = min(ends)
        spent = self._history.spent
        dollars = spent.dollars + seconds * self.per_second("dollars", now) if spent.calls > spent.unpriced else None
        return Forecast(limit=limit, seconds=seconds, dollars=dollars)


def forecast_record(run: StoredRun, pace: Pace, now: float) -> dict[str, Any] | None:
    """What the engine at work will come to, for machines; None where none is, or nothing is known."""
    began = run.repository.engines(run.history.run).since()
    found = None if began is None else pace.forecast(last_limits(run.history), began, now)
    return asdict(found) if found else None
