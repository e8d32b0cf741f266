"""What a run looks like at one moment: the skeleton in rows and lanes, and where each candidate lies on a map."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from msgspec import Struct

from evogit.cli.lines.view import StillView, first_line
from evogit.core import Candidate, Entry
from evogit.history import History
from evogit.history.counts import Step
from evogit.review import Cell, Row, expanded, rows
from evogit.review.followed_run import Forecast
from evogit.review.graph_lanes import lanes
from evogit.review.graph_skeleton import skeleton

LOWEST = 0.02
"""The share of candidates whose scores may lie below the map."""

MOST_AGENT = 8
"""Columns of an agent's name."""

AXES = ("candidates", "time", "score")
"""What columns of the map may be."""

SCALES = ("even", "by distance to the best")
"""How scores are spread over the map."""

CROWDED = 0.9
"""The place of the middle candidate on an even scale from which on the other one is chosen at first."""


class Now(Struct, frozen=True, kw_only=True):
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
    """A history that does not change any more while this is looked at; what is found in it is found once.

    Attributes:
        steps: how the best grew.
        latest: the last entries, the newest last.
        unfolded: candidates whose descendants are all shown.
        kept: a candidate that is shown, whatever it is.
    """

    view: StillView
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
        gains = [self.view.gain(row.candidate.commit).cell_len for row in self.rows]
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

    # --- the map --------------------------------------------------------------------------------------------------

    def map(self, axis: str, scale: str) -> dict[str, tuple[float, float]]:
        """Id -> place from the lower left (0, 0) to the upper right (1, 1): when it came, and how good it is.

        With the axis `score` better is to the right and later is up, else later is to the right and better is up.
        """
        known = [row.candidate for row in self.rows]
        came = {each.commit: self._moment(each, axis) for each in known}
        levels = {each.commit: self._height(each.commit, scale) for each in known}
        across, up = (levels, came) if axis == "score" else (came, levels)
        return {commit: (across[commit], up[commit]) for commit in came}

    @cached_property
    def scale(self) -> str:
        """The scale on which most can be told apart: decades where nearly all are close to the best."""
        heights = sorted(self._height(row.candidate.commit, SCALES[0]) for row in self.rows)
        return SCALES[heights[len(heights) // 2] > CROWDED] if heights else SCALES[0]

    @cached_property
    def ends(self) -> tuple[float, float] | None:
        """The lowest value that matters, which is where the map ends, and the best one; None while there are none."""
        history, sign = self.history, self.history.metric.sign if self.history.started else 1
        known = (history.fitness(row.candidate.commit) for row in self.rows)
        ranked = sorted(sign * value for value in known if value is not None)
        if not ranked:
            return None
        seed = history.fitness(history.seed) if history.seed else None
        low = ranked[int(len(ranked) * LOWEST)]
        return sign * min(low, low if seed is None else sign * seed), sign * ranked[-1]

    def value_at(self, height: float, scale: str) -> float | None:
        """The value at a height from 0 to 1; None while there are none."""
        if self.ends is None:
            return None
        low, high = self.ends
        if scale == SCALES[0] or height == 1 or low == high:
            return low + height * (high - low)
        nearest, decades = self._decades
        return high + math.copysign(nearest * math.exp((1 - height) * decades), low - high)

    def _height(self, commit: str, scale: str) -> float:
        """How far a value is on the way from the lowest to the best; 0 without a value, or below the lowest."""
        value, ends = self.history.fitness(commit), self.ends
        if value is None or ends is None:
            return 0.0
        low, high = ends
        if low == high:
            return 0.5
        share = (value - low) / (high - low)
        if scale != SCALES[0]:
            nearest, decades = self._decades
            share = 1 - math.log(max(abs(high - value) / nearest, 1.0)) / decades
        return min(max(share, 0.0), 1.0)

    @cached_property
    def _decades(self) -> tuple[float, float]:
        """The least distance to the best that is drawn as one, and the logarithm of how often it fits into the map."""
        low, high = self.ends or (0.0, 1.0)
        nearest = 0.5 * 10.0**-self.view.places
        return nearest, math.log(max(abs(high - low) / nearest, 2.0))

    def _moment(self, candidate: Candidate, axis: str) -> float:
        """When a candidate came, as a share of the run's time or of its candidates."""
        if axis == "time":
            first, last = self.history.span
            return min(max((candidate.time - first) / max(last - first, 1), 0.0), 1.0)
        return candidate.number / max(len(self.history.phylogeny) - 1, 1)
