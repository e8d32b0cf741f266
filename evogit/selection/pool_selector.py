"""What the selectors that breed from a pool of all valid candidates have in common: merges, donors, adoption."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod

from evogit.history import History
from evogit.selection import Move
from evogit.selection.merge_planner import Planner

COMBINE = 0.25
"""Chance that a merge or graft onto the drawn parent is looked for."""

DONOR = 0.25
"""Chance that an agent is shown a second candidate, as with the default selector."""

FAVOUR = 0.25
"""Chance to breed from a promoted candidate where there is one."""


class Drawing(ABC):
    """A selector that draws parents and donors alike; kinds differ in how they draw.

    Nobody's own line matters: the individual of an agent is its latest child that was fitter than all its parents,
    shown by its branch, and the parent only where there is nothing to draw.
    """

    def __init__(self) -> None:
        self._planner = Planner()

    @abstractmethod
    def draw(self, history: History, rng: random.Random) -> str | None:
        """A valid candidate that is not pruned; None while there is none."""

    def next_move(self, history: History, agent: str, rng: random.Random) -> Move:
        """A planned merge or graft onto a drawn one now and then, else a mutation of it with another as donor."""
        parent = favoured(history, rng) or self.draw(history, rng) or history.head(agent)
        if rng.random() < COMBINE and (planned := self._planner.move(history, parent, agent, rng)):
            return planned
        other = self.draw(history, rng) if rng.random() < DONOR else None
        return Move(operator="mutation", parents=(parent,), donor=other if other != parent else None)

    def adopts(self, history: History, agent: str, child: str) -> bool:
        """Valid, not pruned, and fitter than all its parents."""
        if history.fitness(child) is None or child in history.pruned:
            return False
        return all(history.fitter(child, parent) for parent in history.phylogeny[child].parents)


def favoured(history: History, rng: random.Random) -> str | None:
    """A promoted candidate now and then, where there is a valid one."""
    promoted = [each for each in sorted(history.promoted - history.pruned) if history.fitness(each) is not None]
    return rng.choice(promoted) if promoted and rng.random() < FAVOUR else None
