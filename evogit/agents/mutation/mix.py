"""How likely each way of changing code is drawn, and how far it goes."""

from __future__ import annotations

import random
from collections.abc import Mapping

from msgspec import Struct

from evogit.source.numbers import Constant

ONE_MORE = 0.35
"""Chance of a further edit after each edit, usually; the mean number of edits is in proportion to boldness."""

STEPS: Mapping[str, float] = {"perturb_number@0.001": 1 / 3, "perturb_number@0.01": 1 / 3, "perturb_number@0.1": 1 / 3}
"""Steps by the decade that they are drawn from, as shares of a number's value or of one, and their usual chances."""

BOLDEST = 10.0  # changes never become larger than so many times the usual ones


class Mix(Struct, frozen=True, kw_only=True):
    """The weights of the ways of changing code."""

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

    def step(self, rng: random.Random) -> tuple[str, float]:
        """How far a float goes: the way, and the scale as a share of the number's value or of one."""
        way = drawn(STEPS, rng)
        step = float(way.partition("@")[2]) * 10 ** rng.random()
        return way, step * self.size


USUAL = Mix()
"""The mix of a mutation without boldness."""


def drawn(chances: Mapping[str, float], rng: random.Random) -> str:
    """Return one of the ways by their chances."""
    return rng.choices(list(chances), list(chances.values()))[0]
