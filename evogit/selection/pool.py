"""The pool of all valid candidates: its ranking, how many children each has, and the base of what draws from it."""

from __future__ import annotations

import random
from abc import abstractmethod
from collections import Counter

from evogit.history import History
from evogit.history.per_candidate import Lessons
from evogit.selection import Move, Mutation
from evogit.selection.merge_planner import Planner
from evogit.selection.registry import BuiltIn

COMBINE = 0.25
"""Chance that a merge onto the drawn parent is looked for."""

DONOR = 0.25
"""Chance that an agent is shown a second candidate, as with the default selector."""

FAVOUR = 0.25
"""Chance to breed from a promoted candidate where there is one."""

Ranked = tuple[float, int, str]
"""Fitness with its sign such that less is better, the candidate's number, its id: in this order."""


class Ranking:
    """All candidates that may breed, the fittest first, of equals the one that was made first.

    Those are valid, not pruned, and no merges that gained nothing beyond noise.
    """

    def __init__(self) -> None:
        self._ranks = Lessons(_rank, pooled=True)

    def of(self, history: History) -> list[Ranked]:
        """Return the candidates of this history."""
        ranks, pruned = self._ranks.of(history, history.judgements), history.pruned
        return sorted(rank for commit, rank in ranks.items() if rank and commit not in pruned)


def _rank(history: History, commit: str) -> Ranked | None:
    fitness = history.fitness(commit)
    if fitness is None or not history.earned(commit):
        return None
    return -history.metric.sign * fitness, history.phylogeny.numbers[commit], commit


class Offspring:
    """The number of evaluated children of each candidate, under any task; waiting ones are not counted.

    Whether a candidate that waits is known already depends on time, even in a deterministic run.
    """

    def __init__(self) -> None:
        self._judgements: list[str] | None = None
        self._position = 0
        self._children: Counter[str] = Counter()

    def of(self, history: History) -> Counter[str]:
        """Return id -> number of children, for this history; valid until the next question."""
        judgements = history.judgements
        if judgements is not self._judgements:
            self._judgements = judgements
            self._position = 0
            self._children = Counter()
        for commit in judgements[self._position :]:
            self._children.update(history.phylogeny.parents(commit))
        self._position = len(judgements)
        return self._children


class Drawing(BuiltIn):
    """A selector that draws parents and donors alike; kinds differ in how they draw.

    Nobody's own line matters: the individual of an agent is its latest child that was fitter than all its parents,
    shown by its branch, and the parent only where there is nothing to draw.
    """

    def __init__(self) -> None:
        self._planner = Planner()

    @abstractmethod
    def draw(self, history: History, agent: str, rng: random.Random) -> str | None:
        """Return a valid candidate that is not pruned for an agent to breed from; None while there is none."""

    def next_move(self, history: History, agent: str, rng: random.Random) -> Move:
        """Return a planned merge onto a drawn one now and then, else a mutation of it with another as donor."""
        parent = favoured(history, rng) or self.draw(history, agent, rng) or history.head(agent)
        if rng.random() < COMBINE and (planned := self._planner.move(history, parent, agent, rng)):
            return planned
        other = self.draw(history, agent, rng) if rng.random() < DONOR else None
        return Mutation(parent=parent, donor=other if other != parent else None)

    def adopts(self, history: History, agent: str, child: str) -> bool:
        """Return whether the child is valid, not pruned, and fitter than all its parents."""
        if history.fitness(child) is None or child in history.pruned or not history.earned(child):
            return False
        return all(history.fitter(child, parent) for parent in history.phylogeny[child].parents)


def favoured(history: History, rng: random.Random) -> str | None:
    """Return a promoted candidate now and then, if there is a valid one."""
    promoted = [each for each in sorted(history.promoted - history.pruned) if history.fitness(each) is not None]
    return rng.choice(promoted) if promoted and rng.random() < FAVOUR else None
