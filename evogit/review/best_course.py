"""How a run's best grew, folded from its entries as they come."""

from __future__ import annotations

from typing import NamedTuple

from evogit.core import Entry, Proposed
from evogit.history import History


class Step(NamedTuple):
    """From here on `best` is the best: the number of a candidate, None where there is none.

    `evaluations` were made by then, `elapsed` is in milliseconds; `dollars` is None where a price is not known.
    """

    best: int | None
    evaluations: int
    elapsed: int
    dollars: float | None


class BestCourse:
    """The steps so far. Where strengths shift with each verdict only the last ones say anything, so there are none."""

    def __init__(self, history: History) -> None:
        """`history` takes each entry in before this does."""
        self.steps: list[Step] = []
        self._history = history
        self._began: int | None = None

    def take(self, entry: Entry) -> int:
        """Take in one more entry; the milliseconds since the run's first one."""
        now = 1000 * entry.time + entry.ms
        self._began = now if self._began is None else self._began
        if not isinstance(entry.event, Proposed):
            self._step(now - self._began)
        return now - self._began

    def _step(self, elapsed: int) -> None:
        """Note it where another candidate is the best now."""
        history = self._history
        shifting = history.started is None or history.scores.shifting
        best = None if shifting or history.best is None else history.phylogeny[history.best].number
        if (self.steps[-1].best if self.steps else None) != best:
            spent = history.spent
            dollars = None if spent.unpriced else spent.dollars
            self.steps.append(Step(best, history.counts.evaluated, elapsed, dollars))
