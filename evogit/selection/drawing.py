"""What the selectors that breed from a pool of all valid candidates have in common: merges, donors, adoption."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod

from evogit.history import History
from evogit.selection import Move

MERGE = 0.10
"""Chance of a merge, where the drawn candidates allow one."""

FAVOUR = 0.25
"""Chance to breed from a promoted candidate where there is one."""

STRATEGIES = ("fitter", "random")
"""How conflicts of a merge are settled, drawn evenly."""


class Drawing(ABC):
    """A selector that draws parents, partners and donors alike; kinds differ in how they draw.

    Nobody's own line matters: the individual of an agent is its latest child that was fitter than all its parents,
    shown by its branch, and the parent only where there is nothing to draw.
    """

    @abstractmethod
    def draw(self, history: History, rng: random.Random) -> str | None:
        """A valid candidate that nobody pruned; None while there is none."""

    def next_move(self, history: History, agent: str, rng: random.Random) -> Move:
        """A merge of two drawn ones now and then, else a mutation of one with the other as donor."""
        parent = favoured(history, rng) or self.draw(history, rng) or history.head(agent)
        other = self.draw(history, rng)
        if rng.random() < MERGE and other and (merge := merging(history, parent, other, rng)):
            return merge
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


def merging(history: History, one: str, other: str, rng: random.Random) -> Move | None:
    """A merge of two candidates that both improved since their lines parted and were not merged like this before."""
    base = history.phylogeny.merge_base(one, other)
    if base is None or base in (one, other) or not (history.fitter(one, base) and history.fitter(other, base)):
        return None
    parents = (other, one) if history.fitter(other, one) else (one, other)
    strategy = rng.choice(STRATEGIES)
    if history.attempts.made("merge", strategy, parents):
        return None
    return Move(operator="merge", parents=parents, strategy=strategy)
