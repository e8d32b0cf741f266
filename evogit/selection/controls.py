"""Selectors that evolution is compared with: each leaves out what should earn its cost."""

from __future__ import annotations

import random

from evogit.history import History
from evogit.selection import Move, Mutation
from evogit.selection.registry import BuiltIn

DRAWS = 1000
"""Draws after which hardly anybody seems to be valid; drawing again leaves all valid ones alike."""


class BestOfN(BuiltIn):
    """Every proposal is a mutation of the seed: sampling without any evolution.

    Found hard to beat at equal cost by Gideoni, Risi and Gal (2026, arXiv 2602.16805), and beaten by search on problems
    of Zhang et al. (2024, arXiv 2407.10873): so each task has to show which it is.
    """

    name = "best-of-n"
    help = "a control: every candidate is a mutation of the seed"
    is_control = True

    def next_move(self, history: History, agent: str, rng: random.Random) -> Move:
        """A mutation of the seed."""
        return Mutation(parent=history.seed or history.head(agent))

    def adopts(self, history: History, agent: str, child: str) -> bool:
        """What is fitter than the agent's own best, so that its branch shows the best of its samples."""
        return child not in history.pruned and history.fitter(child, history.head(agent))


class Sequential(BuiltIn):
    """Each agent replaces its one individual by a child that is not worse; with one agent the (1+1) EA.

    Droste, Jansen & Wegener, 2002, "On the analysis of the (1+1) evolutionary algorithm".
    """

    name = "sequential"
    help = "a control: each agent continues alone"
    is_control = True

    def next_move(self, history: History, agent: str, rng: random.Random) -> Move:
        """A mutation of the agent's own individual."""
        return Mutation(parent=history.head(agent))

    def adopts(self, history: History, agent: str, child: str) -> bool:
        """Valid and no worse than what the agent has."""
        return _no_worse(history, child, history.head(agent))


class OnePlusLambda(BuiltIn):
    """All agents mutate one shared individual, the best; of equals the latest.

    The (1+λ) evolution strategy (Beyer and Schwefel, 2002, "Evolution strategies: a comprehensive introduction")
    without waiting for a whole generation.
    """

    name = "one-plus-lambda"
    help = "a control: all agents mutate the best"
    is_control = True

    def next_move(self, history: History, agent: str, rng: random.Random) -> Move:
        """A mutation of the shared individual."""
        return Mutation(parent=_shared(history, agent))

    def adopts(self, history: History, agent: str, child: str) -> bool:
        """Valid and no worse than the shared individual."""
        return _no_worse(history, child, _shared(history, agent))


class RandomParent(BuiltIn):
    """The parent is any valid candidate evaluated so far, all alike: descent without selection."""

    name = "random-parent"
    help = "a control: descent without selection"
    is_control = True

    def next_move(self, history: History, agent: str, rng: random.Random) -> Move:
        """A mutation of a candidate drawn uniformly."""
        draws = (rng.choice(history.judgements) for _ in range(DRAWS) if history.judgements)
        valid = (each for each in draws if each not in history.pruned and history.fitness(each) is not None)
        return Mutation(parent=next(valid, history.head(agent)))

    def adopts(self, history: History, agent: str, child: str) -> bool:
        """Whatever is valid."""
        return history.fitness(child) is not None and child not in history.pruned


def _no_worse(history: History, child: str, than: str) -> bool:
    return history.fitness(child) is not None and child not in history.pruned and not history.fitter(than, child)


def _shared(history: History, agent: str) -> str:
    best = history.head(agent)
    for each in history.living():
        newer = history.phylogeny[each].number > history.phylogeny[best].number
        if history.fitter(each, best) or (newer and not history.fitter(best, each)):
            best = each
    return best
