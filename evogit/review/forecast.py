"""The pace of a run, its forecast, and what its agents do."""

from __future__ import annotations

from itertools import islice, takewhile
from typing import Any

from msgspec import Struct, to_builtins

from evogit.config.run_settings import RunLimits, Total
from evogit.history import History
from evogit.history.context import StoredRun
from evogit.history.counts import Moment
from evogit.repository import Repository
from evogit.review.spending import last_limits, used

REMEMBERED = 200  # evaluations over which the pace is measured, at most
FEWEST = 5  # evaluations below which nothing is forecast


class Forecast(Struct, frozen=True, kw_only=True):
    """The limit that a run reaches first, in how many seconds, and its dollars by then; None if unknown."""

    limit: str
    seconds: float
    dollars: float | None


class Pace:
    """How fast the engine at work goes, from its last evaluations."""

    def __init__(self, history: History) -> None:
        self._history = history

    def _latest(self) -> list[Moment]:
        course = self._history.course
        latest = (course.moments[commit] for commit in islice(reversed(course.moments), REMEMBERED))
        return list(takewhile(lambda each: each.elapsed >= course.started, latest))

    def per_second(self, what: Total, now: float) -> float:
        """How much of it is used in a second; 0 while too little is known."""
        latest, began = self._latest(), self._history.course.began
        if len(latest) < FEWEST or began is None:
            return 0.0
        first = latest[-1]
        before: float | None = getattr(first, what)
        spent, counts = self._history.spent, self._history.counts
        # for good: calls in flight nearly always take less than is set aside for them
        done = {"dollars": spent.dollars, "tokens": spent.tokens, "calls": spent.charged}
        done |= {"proposals": counts.charged, "evaluations": counts.evaluated}
        gained = 0.0 if before is None else done[what] - before
        return gained / max(now - (began + first.elapsed) / 1000, 0.001)

    def forecast(self, limits: RunLimits, began: float, now: float) -> Forecast | None:
        """What an engine that `began` at a time will come to; None where no limit ends it, or nothing is known yet."""
        ends: list[tuple[float, str]] = []
        for what, most in limits.totals.items():
            rate = self.per_second(what, now)
            if most is not None and rate > 0:
                ends.append((max(most - used(self._history, what), 0) / rate, what))
        if limits.minutes is not None and len(self._latest()) >= FEWEST:
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
    return to_builtins(found) if found else None


SHORT = 7
"""Digits of an id."""


def doing(repository: Repository, history: History) -> dict[str, str] | None:
    """Return what each agent at work does, in words; None if no engine is at work."""
    alive = repository.engines(history.run).alive()
    if not alive:
        return None
    started = [history.engines[engine] for engine in alive if engine in history.engines]
    now = {agent: "at work" for each in started for agent in each.agents}
    now |= {asked.agent: f"asking {asked.model}" for asked in history.reserved.values() if asked.agent in now}
    waiting = [each for each in history.pending.values() if each.agent in now]
    return now | {each.agent: f"evaluating {each.commit[:SHORT]}" for each in waiting}
