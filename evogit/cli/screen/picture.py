"""What a run looks like at one moment: the skeleton in rows and lanes, and where each candidate lies on a map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from evogit.cli.view import StillView, first_line
from evogit.core import Candidate, Entry
from evogit.history import History
from evogit.review import Cell, Row, expanded, rows
from evogit.review.best_course import Step
from evogit.review.forecast import Forecast
from evogit.review.lanes import lanes
from evogit.review.skeleton import skeleton

LOWEST = 0.02
"""The share of candidates whose scores may lie below the map."""

MOST_AGENT = 8
"""Columns of an agent's name."""

AXES = ("candidates", "time", "score")
"""What columns of the map may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Now:
    """What is no matter of the journal.

    Attributes:
        agents: what each agent does; None where no engine is at work.
        began: when the engine at work began, in seconds since the epoch.
    """

    time: float
    agents: dict[str, str] | None = None
    began: float | None = None
    forecast: Forecast | None = None
    per_second: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A history that does not change any more while this is looked at.

    Attributes:
        steps: how the best grew.
        latest: the last entries, the newest last.
        unfolded: candidates whose descendants are all shown.
        kept: a candidate that is shown, whatever it is.
    """

    view: StillView
    now: Now
    steps: Sequence[Step] = ()
    latest: Sequence[Entry] = ()
    unfolded: frozenset[str] = frozenset()
    kept: str | None = None

    @property
    def history(self) -> History:
        """The run."""
        return self.view.history

    @cached_property
    def shown(self) -> set[str]:
        """Ids of the candidates that are drawn."""
        history = self.history
        unfolded = [each for each in self.unfolded if each in history.phylogeny]
        found = expanded(history, skeleton(history), unfolded)
        return found | history.phylogeny.skeleton([self.kept] if self.kept else [])

    @cached_property
    def rows(self) -> list[Row]:
        """They, the youngest first."""
        return rows(self.history, self.shown) if self.history.seed else []

    @cached_property
    def lanes(self) -> list[list[Cell]]:
        """The lines beside each of them."""
        return lanes(self.rows, self.history.best)

    @cached_property
    def widths(self) -> tuple[int, int, int]:
        """Columns that scores, gains and agents' names take."""
        scores = [self.view.score(row.candidate.commit).cell_len for row in self.rows]
        gains = [self.view.gain(row.candidate.commit, row.candidate.parents).cell_len for row in self.rows]
        agents = [len(first_line(row.candidate.agent)) for row in self.rows]
        return max(scores, default=0), max(gains, default=0), min(max(agents, default=0), MOST_AGENT)

    @cached_property
    def number(self) -> dict[str, int]:
        """Id -> number of the row."""
        return {row.candidate.commit: number for number, row in enumerate(self.rows)}

    @cached_property
    def trunk(self) -> set[str]:
        """Ids of the best one's ancestors along first parents."""
        best = self.history.best
        return {each.commit for each in self.history.phylogeny.lineage(best)} if best else set()

    @cached_property
    def elapsed(self) -> float:
        """Seconds for which the engine has been at work, or from the run's first entry to its last."""
        first, last = self.history.span
        return self.now.time - self.now.began if self.now.began is not None else float(last - first)

    # --- the map --------------------------------------------------------------------------------------------------

    def map(self, axis: str) -> dict[str, tuple[float, float]]:
        """Id -> place from the lower left (0, 0) to the upper right (1, 1): when it came, and how good it is.

        With the axis `score` better is to the right and later is up, else later is to the right and better is up.
        """
        known = [row.candidate for row in self.rows]
        ends = self.scale or (0.0, 1.0)
        came = {each.commit: self._moment(each, axis) for each in known}
        levels = {each.commit: self._level(each.commit, *ends) for each in known}
        across, up = (levels, came) if axis == "score" else (came, levels)
        return {commit: (across[commit], up[commit]) for commit in came}

    @cached_property
    def scale(self) -> tuple[float, float] | None:
        """The lowest value that matters, which is where the map ends, and the best one; None while there are none."""
        history, sign = self.history, self.history.metric.sign if self.history.started else 1
        known = (history.fitness(row.candidate.commit) for row in self.rows)
        ranked = sorted(sign * value for value in known if value is not None)
        if not ranked:
            return None
        seed = history.fitness(history.seed) if history.seed else None
        low = ranked[int(len(ranked) * LOWEST)]
        return sign * min(low, low if seed is None else sign * seed), sign * ranked[-1]

    def _level(self, commit: str, low: float, high: float) -> float:
        """How far a value is on the way from the lowest to the best; without a value, or below all: nowhere."""
        value = self.history.fitness(commit)
        if value is None or low == high:
            return 0.0 if value is None else 0.5
        return min(max((value - low) / (high - low), 0.0), 1.0)

    def _moment(self, candidate: Candidate, axis: str) -> float:
        """When a candidate came, as a share of the run's time or of its candidates."""
        if axis == "time":
            first, last = self.history.span
            return min(max((candidate.time - first) / max(last - first, 1), 0.0), 1.0)
        return candidate.number / max(len(self.history.phylogeny) - 1, 1)
