"""Which ways of changing code the mutator draws and how far they go: as usual at first, then by what pays in the run.

Ways are drawn by probability matching (Thierens 2005, "An adaptive pursuit strategy for allocating operator
probabilities"): in proportion to their rate of success, here times their usual chance, and never below a floor. Steps
of numbers are inherited with a log-normal change, as in evolution strategies (Schwefel 1981, "Numerical Optimization of
Computer Models"), but some are always drawn from the usual distribution, because no one knows the scale of a stranger's
constant.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from evogit.agents import Tally

PRIOR = 20.0
"""Tries that what is usual weighs as much as: a way that was tried this often counts half by its own success."""

FLOOR = 0.3
"""The share of its usual chance that a way keeps whatever comes of it: what does not pay now may pay later."""

USUAL_RATE = 0.15
"""Share of children that are better than their parent, while nothing is known."""

ONE_MORE = 0.35
"""Chance of a further edit after each edit, usually; the mean number of edits is proportional to boldness."""

INHERITED = 0.5
"""Chance of a step near the one that made the parent, where a step did."""

CHANGE = 0.7
"""Standard deviation of the logarithm of a step that is inherited."""

SMALLEST, LARGEST = 1e-3, 1.0
"""Usual steps, as a share of a number's value or of one."""


BOLDEST = 10.0
"""How many times the largest usual step no boldness exceeds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """How much each way of changing code is drawn.

    Attributes:
        experience: how often a way was tried and paid in this run, by its name without the step; without it all is
            as usual.
        boldness: multiplies the size of changes; 1 is usual.
        inherited: the step of a number that made the parent; None where there was none.
    """

    experience: Mapping[str, Tally] = field(default_factory=dict)
    boldness: float = 1.0
    inherited: float | None = None

    @property
    def one_more(self) -> float:
        """Chance of a further edit after each edit."""
        return 1 - (1 - ONE_MORE) / max(self.boldness, 1.0)

    def draw(self, usual: Mapping[str, float], rng: random.Random) -> str:
        """One of the ways, by their usual chances and by how they did."""
        return rng.choices(list(usual), self.weights(usual))[0]

    def weights(self, usual: Mapping[str, float]) -> list[float]:
        """The chances of the ways, in their order, which add up to what the usual ones do."""
        tallies = [self.experience.get(way, Tally(0, 0)) for way in usual]
        rate = _rate(sum(each.tries for each in tallies), sum(each.gains for each in tallies), USUAL_RATE)
        earned = [p * _rate(each.tries, each.gains, rate) for p, each in zip(usual.values(), tallies, strict=True)]
        share = (1 - FLOOR) * sum(usual.values()) / sum(earned)
        return [FLOOR * p + share * each for p, each in zip(usual.values(), earned, strict=True)]

    def step(self, rng: random.Random) -> float:
        """How far a number goes, as a share of its value or of one: the scale of a normal distribution."""
        if self.inherited is not None and rng.random() < INHERITED:
            step = self.inherited * math.exp(rng.gauss(0, CHANGE))
        else:
            step = math.exp(rng.uniform(math.log(SMALLEST), math.log(LARGEST)))
        return min(max(step * self.boldness, SMALLEST), LARGEST * min(max(self.boldness, 1.0), BOLDEST))


USUAL = Mix()
"""What is drawn while nothing is known."""


def _rate(tries: int, gains: int, usual: float) -> float:
    """The expected rate of success: the mean of a beta distribution with a prior of as many as `PRIOR` tries."""
    return (PRIOR * usual + gains) / (PRIOR + tries)


def step_of(strategy: str) -> float | None:
    """The step that a strategy such as `perturb_number@0.03+swap_name` tells of; None where it tells of none."""
    for way in strategy.split("+"):
        _, _, step = way.partition("@")
        try:
            found = float(step)
        except ValueError:
            continue
        if SMALLEST / 2 <= found <= 1 / SMALLEST:
            return found
    return None
