"""How far repeated measurements can be believed: intervals, and what to measure next. Pure statistics."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache

LEVEL = 0.95
"""Confidence of all intervals that are shown, two-sided."""


LARGEST = 1e140
"""Deviations from here on are taken for infinite, as their squares would overflow."""


def mean(values: Sequence[float]) -> float:
    """The arithmetic mean; of equals exactly their value, and no overflow of large ones."""
    return math.fsum(value / len(values) for value in values) if min(values) < max(values) else values[0]


@dataclass(frozen=True, slots=True)
class Estimate:
    """The mean of `times` measurements; `squares` is the sum of their squared deviations from it."""

    mean: float
    times: int = 1
    squares: float = 0.0

    @classmethod
    def of(cls, values: Iterable[float]) -> Estimate:
        """What these measurements say; there must be one at least."""
        known = list(values)
        average = mean(known)
        far = max(abs(value - average) for value in known)
        squares = math.fsum((value - average) ** 2 for value in known) if far < LARGEST else math.inf
        return cls(average, len(known), squares)


@dataclass(slots=True)
class Noise:
    """The spread of single measurements, learnt from everything that was measured more than once.

    The variance is pooled within groups of unequal size: the sum of all squared deviations from the groups' own means
    over its degrees of freedom, the sum of (times - 1) (Snedecor & Cochran, Statistical Methods, 1967, section 10.12).
    It is taken to be the same for all, so that a candidate measured once has an interval too.
    """

    _known: dict[str, Estimate] = field(default_factory=dict)
    _pooled: tuple[float, int] | None = (math.inf, 0)

    def learn(self, name: str, values: Sequence[float]) -> None:
        """Take in all measurements of one, in the place of those before."""
        self._known.pop(name, None)
        if len(values) > 1:
            self._known[name] = Estimate.of(values)
        self._pooled = None if self._known else (math.inf, 0)

    def without(self, name: str) -> Noise:
        """What is known but for what was measured of `name`."""
        known = {each: estimate for each, estimate in self._known.items() if each != name}
        return Noise(known, None if known else (math.inf, 0))

    def _pool(self) -> tuple[float, int]:
        if self._pooled is None:
            freedom = sum(each.times - 1 for each in self._known.values())
            self._pooled = math.fsum(each.squares for each in self._known.values()) / freedom, freedom
        return self._pooled

    @property
    def freedom(self) -> int:
        """Degrees of freedom of the variance; 0 while nothing was measured twice."""
        return self._pool()[1]

    @property
    def variance(self) -> float:
        """Of one measurement, in the metric's unit squared; infinite while nothing was measured twice."""
        return self._pool()[0]

    def margin(self, *times: int, level: float = LEVEL) -> float:
        """Half the interval of a mean of so many measurements; of the difference of two means when two are given.

        Student's t (1908) with the pooled variance: t * sqrt(variance * (1/n + 1/m)). Infinite while nothing is known.
        """
        variance, freedom = self._pool()
        if not variance or not freedom:
            return variance
        return student(level, freedom) * math.sqrt(variance * math.fsum(1 / each for each in times))


@lru_cache(maxsize=1024)
def student(level: float, freedom: int) -> float:
    """The quantile t with P(-t < T < t) = `level` for so many degrees of freedom.

    Exact for 1 and 2; from 3 on the expansion 26.7.5 of Abramowitz & Stegun (1964), off by less than 0.3 % at 95 %.
    """
    p = (1 + level) / 2
    if freedom == 1:
        return math.tan(math.pi * (p - 0.5))
    if freedom == 2:
        return (2 * p - 1) / math.sqrt(2 * p * (1 - p))
    z = deviate(level)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + math.fsum(term / freedom ** (power + 1) for power, term in enumerate(terms))


@cache
def deviate(level: float) -> float:
    """The quantile z with P(-z < Z < z) = `level` of the standard normal distribution."""
    from statistics import NormalDist  # with fractions and decimals: longer to load than all that is here

    return NormalDist().inv_cdf((1 + level) / 2)


# --- whom to measure next -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Duel:
    """The two of a field that are hardest to tell apart: the one with the best mean, and its likeliest rival.

    `cost` is their difference in standard errors of it, as if single measurements had the variance 1.
    """

    leader: str
    rival: str
    cost: float

    def next(self, field: Mapping[str, Estimate]) -> str:
        """Which of the two to measure: the one that was measured less often, of equals the rival."""
        return self.leader if field[self.leader].times < field[self.rival].times else self.rival

    def decided(self, field: Mapping[str, Estimate], noise: Noise) -> bool:
        """Whether the leader is better than everybody, wrongly in about one of twenty cases.

        The error is shared among all rivals (Bonferroni), which also pays for looking again and again.
        """
        a, b = field[self.leader], field[self.rival]
        level = 1 - (1 - LEVEL) / max(len(field) - 1, 1)
        return a.mean - b.mean > noise.margin(a.times, b.times, level=level)


def duel(field: Mapping[str, Estimate]) -> Duel | None:
    """Whom to tell apart next, of a field in which higher is better; None while there are fewer than two.

    A top-two rule for finding the best arm with few pulls: the leader is the empirical best, the rival the one whose
    lead over it would cost least to believe, (mean - mean) / sqrt(1/n + 1/m) ("EB-TC" of Jourdan et al., 2022, "Top
    Two Algorithms Revisited"; the cost from Shang et al., 2020; the same two as LUCB, Kalyanakrishnan et al., 2012,
    picks by upper bounds). It needs no variance, so nothing must be known of the noise before it begins.
    """
    if len(field) < 2:
        return None
    leader = max(field, key=lambda name: field[name].mean)
    best = field[leader]

    def cost(name: str) -> float:
        other = field[name]
        return (best.mean - other.mean) / math.sqrt(1 / best.times + 1 / other.times)

    rival = min((name for name in field if name != leader), key=cost)
    return Duel(leader, rival, cost(rival))
