"""EvoGit's own rule: every agent keeps one individual, and a child takes its place when it is no worse."""

from __future__ import annotations

import random

from evogit.history import History
from evogit.selection import Move

MERGE = 0.10
"""Chance of a merge where the agents' individuals allow one."""

MIGRATE = 0.20
"""Chance to breed from another agent's individual (the better of two drawn ones) instead of the own."""

FAVOUR = 0.25
"""Chance to breed from a promoted candidate where there is one."""


class Elitist:
    """The child replaces its agent's individual if it is no worse; parents come mostly from the agent's own line.

    After EvoGit (Huang et al., 2025, "Decentralized Code Evolution via Git-Based Multi-Agent Collaboration"), where
    each agent advances a branch of its own and crosses it with others; migration and favour are ours. Without
    `merging` no two candidates are ever combined.
    """

    def __init__(self, *, merging: bool = True) -> None:
        self._merging = merging

    def next_move(self, history: History, agent: str, rng: random.Random) -> Move:
        """A merge with a complementary individual now and then, else a mutation with another one as donor."""
        parent = self._parent(history, agent, rng)
        if not self._merging:
            return Move(operator="mutation", parents=(parent,))
        if rng.random() < MERGE and (partner := self._partner(history, parent, rng)):
            strategy = rng.choice(("fitter", "random"))
            return Move(operator="merge", parents=_fitter_first(history, parent, partner), strategy=strategy)
        donors = [head for head in history.living() if head != parent]
        return Move(operator="mutation", parents=(parent,), donor=rng.choice(donors) if donors else None)

    def adopts(self, history: History, agent: str, child: str) -> bool:
        """Valid, not pruned, and no worse than what the agent has."""
        if history.fitness(child) is None or child in history.pruned:
            return False
        return not history.fitter(history.head(agent), child)

    def _parent(self, history: History, agent: str, rng: random.Random) -> str:
        draw = rng.random()
        promoted = [each for each in sorted(history.promoted - history.pruned) if history.fitness(each) is not None]
        if promoted and draw < FAVOUR:
            return rng.choice(promoted)
        if draw > 1 - MIGRATE:
            living = history.living() or [history.head(agent)]
            one, other = rng.choice(living), rng.choice(living)
            return other if history.fitter(other, one) else one
        return history.head(agent)

    def _partner(self, history: History, parent: str, rng: random.Random) -> str | None:
        """Another living individual that, like `parent`, improved over where the two lines parted."""
        others = [head for head in history.living() if head != parent]
        if not others:
            return None
        partner = rng.choice(others)
        base = history.phylogeny.merge_base(parent, partner)
        if base is None or base in (parent, partner):
            return None
        return partner if history.fitter(parent, base) and history.fitter(partner, base) else None


def _fitter_first(history: History, a: str, b: str) -> tuple[str, str]:
    return (b, a) if history.fitter(b, a) else (a, b)
