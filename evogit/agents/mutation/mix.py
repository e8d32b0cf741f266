"""Which ways of changing code the mutator draws and how far they go: as usual at first, then by what pays in the run.

Ways are drawn by probability matching (Thierens 2005, "An adaptive pursuit strategy for allocating operator
probabilities"): in proportion to their rate of success, here times their usual chance, and never below a floor. The
sizes of steps are ways too, so that they follow what pays, as in the 1/5 rule (Rechenberg 1973, "Evolutionsstrategie"),
while steps of every size stay: no one knows the scale of a stranger's constant.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

from msgspec import Struct, field

from evogit.agents import OperatorCredit
from evogit.source.numbers import Constant

PRIOR = 20.0
"""Tries that what is usual weighs as much as: a way that was tried this often counts half by its own success."""

FLOOR = 0.3  # the share of its usual chance that a way keeps whatever comes of it: what does not pay now may pay later
USUAL_RATE = 0.15  # share of children that are better than their parent, while nothing is known

ONE_MORE = 0.35
"""Chance of a further edit after each edit, usually; the mean number of edits is in proportion to boldness."""

STEPS: Mapping[str, float] = {"perturb_number@0.001": 1 / 3, "perturb_number@0.01": 1 / 3, "perturb_number@0.1": 1 / 3}
"""Steps by the decade that they are drawn from, as shares of a number's value or of one, and their usual chances."""

BOLDEST = 10.0  # changes never become larger than so many times the usual ones


class Mix(Struct, frozen=True, kw_only=True):
    """The weights of the ways of changing code."""

    # how often a way was tried and paid in this run; without it all is as usual
    experience: Mapping[str, OperatorCredit] = field(default_factory=dict)
    boldness: float = 1.0  # multiplies the size of changes; 1 is usual
    steps: Mapping[Constant, float] | None = None  # how far named numbers go next, as `Brief.steps` tells

    @property
    def size(self) -> float:
        """How many times as large as usual changes are, from 1 to `BOLDEST`."""
        return min(max(self.boldness, 1.0), BOLDEST)

    @property
    def one_more(self) -> float:
        """Chance of a further edit after each edit."""
        return 1 - (1 - ONE_MORE) / self.size

    def draw(self, usual: Mapping[str, float], rng: random.Random) -> str:
        """One of the ways, by their usual chances and by how they did."""
        return rng.choices(list(usual), self.weights(usual))[0]

    def weights(self, usual: Mapping[str, float]) -> list[float]:
        """The chances of the ways, in their order, which add up to what the usual ones do."""
        tallies = [self.experience.get(way, OperatorCredit(0, 0)) for way in usual]
        rate = _rate(sum(each.tries for each in tallies), sum(each.gains for each in tallies), USUAL_RATE)
        earned = [p * _rate(each.tries, each.gains, rate) for p, each in zip(usual.values(), tallies, strict=True)]
        share = (1 - FLOOR) * sum(usual.values()) / sum(earned)
        return [FLOOR * p + share * each for p, each in zip(usual.values(), earned, strict=True)]

    def step(self, rng: random.Random) -> tuple[str, float]:
        """How far a float goes: the way, and the scale as a share of the number's value or of one."""
        way = self.draw(STEPS, rng)
        step = float(way.partition("@")[2]) * 10 ** rng.random()
        return way, step * self.size


USUAL = Mix()  # what is drawn while nothing is known


def _rate(tries: int, gains: int, usual: float) -> float:
    """The expected rate of success: the mean of a beta distribution with a prior of as many as `PRIOR` tries."""
    return (PRIOR * usual + gains) / (PRIOR + tries)
