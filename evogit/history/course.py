"""How a run went: how it stood at each evaluation, and by which steps its best grew."""

from __future__ import annotations

from msgspec import Struct, field

from evogit.core import Entry
from evogit.history.columns import fold
from evogit.history.counts import Counts, Spending
from evogit.history.pages import Pages


class Moment(Struct, frozen=True):
    """How a run stood when a candidate was first evaluated.

    `proposals` are those that count against a limit, `elapsed` is in milliseconds since the run's first entry;
    `dollars` is None where a price is not known.
    """

    evaluations: int
    proposals: int
    elapsed: int
    tokens: int
    dollars: float | None


class Step(Struct, frozen=True):
    """From here on `best` is the best: the number of a candidate, None where there is none."""

    best: int | None
    evaluations: int
    elapsed: int
    dollars: float | None


class Moments(Pages[str, Moment]):
    """The moments of all candidates, by id, in the order of evaluation."""


class Course(Struct):
    """What only the order and the time of entries tell.

    Attributes:
        began: when the first entry was written, in milliseconds since the epoch.
        elapsed: of the latest entry, in milliseconds since then; started: of the latest start of an engine.
        moments: of each candidate that was evaluated.
        steps: of the best, oldest first; none where each verdict shifts all strengths, as only the last ones count.
    """

    began: int | None = None
    elapsed: int = 0
    started: int = 0
    moments: Moments = field(default_factory=Moments)
    steps: list[Step] = field(default_factory=list)

    def tick(self, entry: Entry) -> None:
        """Take in when an entry was written."""
        now = 1000 * entry.time + entry.ms
        if self.began is None:
            self.began = now
        self.elapsed = now - self.began

    def evaluated(self, commit: str, counts: Counts, spent: Spending) -> None:
        """Note how the run stands, with a candidate evaluated for the first time."""
        known = (counts.evaluated, counts.charged, self.elapsed, spent.tokens)
        self.moments[commit] = Moment(*known, None if spent.unpriced else spent.dollars)
        fold(self.moments)

    @property
    def best(self) -> int | None:
        """The number of the best, as far as it is noted."""
        return self.steps[-1].best if self.steps else None

    def step(self, best: int | None, counts: Counts, spent: Spending) -> None:
        """Note that another one is the best."""
        dollars = None if spent.unpriced else spent.dollars
        self.steps.append(Step(best, counts.evaluated, self.elapsed, dollars))
