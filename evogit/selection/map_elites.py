"""MAP-Elites: the fittest of each kind, where the user says what makes a kind."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Mapping, Sequence
from functools import partial

from msgspec import Struct

from evogit.config import Task
from evogit.config.values import nearest
from evogit.core import Metric, UsageError
from evogit.history import History
from evogit.history.per_candidate import Lessons
from evogit.repository import Repository
from evogit.selection import Selector
from evogit.selection.number_steps import NumberSteps
from evogit.selection.pool import Drawing, Ranking
from evogit.selection.registry import Trait, Traits

MAX_PARTS = 1_000_000
"""The largest number of parts of an axis."""

NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"


class Axis(Struct, frozen=True):
    """Values of a trait from `low` to `high` in equal parts; values beyond count to the first or last one."""

    low: float
    high: float
    parts: int

    @classmethod
    def parse(cls, name: str, text: str) -> Axis:
        """Read `LOW..HIGH/PARTS`.

        Raises:
            UsageError: when it is something else.
        """
        match = re.fullmatch(rf"({NUMBER})\.\.({NUMBER})/(\d{{1,9}})", text)
        axis = cls(float(match[1]), float(match[2]), int(match[3])) if match else cls(0.0, 0.0, 0)
        if not 0 < axis._half < math.inf or not 0 < axis.parts <= MAX_PARTS:
            raise UsageError(f"expected {name}=LOW..HIGH/PARTS, such as {name}=0..100/20, got {name}={text:.200}")
        return axis

    def part(self, value: float) -> int:
        """Return the number of the part that a value lies in."""
        share = (value / 2 - self.low / 2) / self._half
        return int(min(max(share, 0.0), 1 - 1e-12) * self.parts)

    @property
    def _half(self) -> float:
        return self.high / 2 - self.low / 2  # of halves, as differences of the greatest numbers are none


class MapElites(Drawing):
    """Draws a cell of the grid, all alike, and in it the fittest candidate.

    Mouret and Clune (2015, "Illuminating search spaces by mapping elites", arXiv 1504.04909). A candidate without one
    of the numbers is in no cell.
    """

    name = "map-elites"
    help = "the fittest of each kind: metrics of the task, size, changed"
    usage = "METRIC=LOW..HIGH/PARTS,..."

    @classmethod
    def open(cls, options: Mapping[str, str], traits: Traits | None, numbers: NumberSteps | None) -> Selector:
        """Return the selector with these axes. Raises UsageError if there are none, or nothing of such a name."""
        if not options:
            raise UsageError("expected what makes a kind: METRIC=LOW..HIGH/PARTS, such as size=0..10000/20")
        axes = {name: Axis.parse(name, text) for name, text in options.items()}
        unknown = [name for name in axes if traits is not None and name not in traits]
        if unknown:
            near = nearest(unknown[0], traits or ())
            raise UsageError(f"nothing called {unknown[0]!r} describes candidates of this task; {near}")
        return cls([(traits[name] if traits else no_value, axis) for name, axis in axes.items()])

    def __init__(self, axes: Sequence[tuple[Trait, Axis]]) -> None:
        super().__init__()
        self._axes = axes
        self._ranking = Ranking()
        self._cells = Lessons(self._cell)

    def draw(self, history: History, agent: str, rng: random.Random) -> str | None:
        """Return the elite of some cell."""
        elites = self.elites(history)
        return elites[rng.choice(sorted(elites))] if elites else None

    def elites(self, history: History) -> Mapping[tuple[int, ...], str]:
        """Return cell -> its fittest candidate, for those that are occupied."""
        cells = self._cells.of(history, history.judgements)
        elites: dict[tuple[int, ...], str] = {}
        for _, _, commit in self._ranking.of(history):
            if cell := cells[commit]:
                elites.setdefault(cell, commit)
        return elites

    def _cell(self, history: History, commit: str) -> tuple[int, ...] | None:
        if history.fitness(commit) is None:
            return None
        values = [trait(history, commit) for trait, _ in self._axes]
        parts = [axis.part(value) for value, (_, axis) in zip(values, self._axes, strict=True) if value is not None]
        return tuple(parts) if len(parts) == len(values) else None


def traits_of(task: Task, repository: Repository | None = None) -> Mapping[str, Trait]:
    """Return what describes candidates of a task, by name; a metric goes before what is built in.

    `size` is the bytes of all files that may be changed, `changed` the lines added to and removed from the seed.
    Without a repository there are names but no values: enough to check what a user asks for.
    """
    traits: dict[str, Trait] = {"size": no_value, "changed": no_value}
    if repository is not None:
        traits = {
            "size": partial(_size, task=task, repository=repository),
            "changed": partial(_changed, repository=repository),
        }
    return traits | {metric.name: partial(_measured, metric=metric) for metric in task.metrics}


def no_value(history: History, commit: str) -> None:
    """Stand for a trait whose name alone matters."""


def _measured(history: History, commit: str, metric: Metric) -> float | None:
    evaluation = history.evaluation(commit)
    return evaluation.metrics.get(metric.name) if evaluation else None


def _size(history: History, commit: str, task: Task, repository: Repository) -> float:
    entries = repository.trees.entries(history.phylogeny[commit].tree)
    return sum(repository.trees.size(entry.blob) for entry in entries if task.is_editable(entry.path))


def _changed(history: History, commit: str, repository: Repository) -> float:
    seed = history.phylogeny[history.seed or commit].tree
    lines = repository.line_changes(seed, history.phylogeny[commit].tree)
    return sum(added + removed for _, added, removed in lines)
