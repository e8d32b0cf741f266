"""The credit of models and kinds of agents: their gains in this run, and the cost of these."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from evogit.agents import ModelCredit
from evogit.events import Proposed
from evogit.history import History
from evogit.history.counts import Effort

WINDOW = 100
"""Moves that are looked at, the latest ones; those before would weigh less than a hundredth."""

MEMORY = 0.95
"""What a move counts of what the next later one does, as in ShinkaEvolve (its `auto_decay`)."""

LARGEST = 1e300
"""Gains from here on are equal."""


@dataclass(slots=True)
class _Sum:
    """Sums over moves, each with its weight; `priced` are the weights of those with a known price."""

    weight: float = 0.0
    reward: float = 0.0
    tokens: float = 0.0
    dollars: float = 0.0
    priced: float = 0.0


def merits(history: History) -> Mapping[str, ModelCredit]:
    """What each model's moves brought: those that came to nothing, and candidates once they are evaluated."""
    return _credit(history, lambda key, effort: effort.model)


def kind_merits(history: History) -> Mapping[str, ModelCredit]:
    """The same for each kind of agents that asks models, as `history.kinds` calls them."""
    kinds = history.past_kinds()
    return _credit(history, lambda key, effort: kinds.get(key[1:], ""))


def _credit(history: History, whose: Callable[[tuple[int, str, str], Effort], str]) -> Mapping[str, ModelCredit]:
    """What the moves of each brought of late.

    The reward of a move is that of ShinkaEvolve (arXiv 2509.19349), exp(max(r - max(parent, seed), 0)) - 1 for a
    fitness of r, with two changes that make it the same for every unit of fitness: the gain is taken as a share x of
    the largest one of late, and the reward (exp(x) - 1) / (e - 1) then lies between 0 and 1. The same evaluated
    candidates give the same merits, so that a resumed run knows what it knew.
    """
    efforts = list(islice(_settled(history), WINDOW))
    gains = [_gain(history, effort) for _, effort in efforts]
    largest = max(gains, default=0.0) or 1.0
    sums: dict[str, _Sum] = defaultdict(_Sum)
    for age, ((key, effort), gain) in enumerate(zip(efforts, gains, strict=True)):
        known, weight = sums[whose(key, effort)], MEMORY**age
        known.weight += weight
        known.reward += weight * math.expm1(gain / largest) / math.expm1(1)
        known.tokens += weight * sum(each.tokens for each in effort.spent.values())
        known.dollars += weight * sum(each.dollars for each in effort.spent.values())
        known.priced += 0.0 if any(each.unpriced for each in effort.spent.values()) else weight
    return {
        name: ModelCredit(
            moves=each.weight,
            gain=each.reward / each.weight,
            tokens=each.tokens / each.weight,
            dollars=each.dollars / each.weight if each.priced == each.weight else None,
        )
        for name, each in sorted(sums.items())
    }


def _settled(history: History) -> Iterator[tuple[tuple[int, str, str], Effort]]:
    """The keys of the moves in which models were asked and of which all is known, with what is known; the latest first.

    In a deterministic run only those that selection may know of, whose results are in by then.
    """
    horizon = history.attempts.horizon
    for key in reversed(history.authors.order):
        effort = history.authors.efforts[key]
        done = effort.done
        pending = isinstance(done, Proposed) and not all(map(history.judged, effort.made))
        if not pending and (horizon is None or effort.move <= horizon):
            yield key, effort


def _gain(history: History, effort: Effort) -> float:
    """Return how much a move gained over the better one of parent and seed, in the metric's unit; 0 for nothing.

    Of a session of several steps the best one counts, against the parent of the first.
    """
    done = effort.done
    if not isinstance(done, Proposed):
        return 0.0
    others = [commit for commit in (*done.parents, history.seed) if commit]
    best = 0.0
    for candidate in effort.made:
        gains = [gain for other in others if (gain := history.gain(candidate, other)) is not None]
        best = max(best, min(gains, default=0.0))
    return min(best, LARGEST)
