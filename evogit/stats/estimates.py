"""How far repeated measurements can be believed: intervals, and what to measure next. Pure statistics."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache

from msgspec import Struct

from evogit.stats.scales import LINEAR, Scale, mean, scale_of
from evogit.stats.two_way import TwoWay, two_way

LEVEL = 0.95  # confidence of all intervals that are shown, two-sided
LARGEST = 1e140  # deviations from here on are taken for infinite, as their squares would overflow


class Estimate(Struct, frozen=True):
    """The mean of `times` measurements; `squares` is the sum of their squared deviations from it, on their scale."""

    mean: float
    times: int = 1
    squares: float = 0.0

    @classmethod
    def of(cls, values: Iterable[float], scale: Scale = LINEAR) -> Estimate:
        """Estimate from these measurements, of which there must be one at least; the mean is in the metric's unit."""
        known = list(values)
        places = [scale.to(value) for value in known] if scale.log else known
        average = mean(places)
        far = max(abs(place - average) for place in places)
        squares = math.fsum((place - average) ** 2 for place in places) if far < LARGEST else math.inf
        return cls(scale.mean(known), len(known), squares)


class _Pool(Struct, frozen=True):
    """The noise of single measurements on their scale: its variance, with so many degrees of freedom."""

    scale: Scale
    variance: float
    freedom: int
    layout: TwoWay | None


@dataclass(slots=True)
class Noise:
    """The spread of single measurements, learnt from everything that was measured more than once.

    The variance is pooled within groups of unequal size: the sum of all squared deviations from the groups' own means
    over its degrees of freedom, the sum of (times - 1) (Snedecor & Cochran, Statistical Methods, 1967, section 10.12).
    It is taken to be the same for all, so that a candidate measured once has an interval too. That holds on the
    `scale`: of values whose noise grows with them, logarithms are pooled. `declared` names it; where it is empty, the
    measurements decide (`scale_of`).

    Repeats with the same number may share their noise, as where they draw the same inputs. Where they do, beyond
    chance, it cancels out in the difference of two values with the same number, and only the residuals of the two-way
    layout are left: `common`, `paired`. The mean of one candidate keeps it, and its interval has as many degrees of
    freedom as there are repeats that differ, less one, however many candidates shared them.
    """

    declared: str = ""
    _known: dict[str, dict[int, float]] = field(default_factory=dict)
    _pooled: _Pool | None = field(default=None, metadata={"derived": True})

    def learn(self, name: str, values: Mapping[int, float]) -> None:
        """Take in all measurements of one by the number of the repeat, in the place of those before."""
        self._known.pop(name, None)
        if len(values) > 1:
            self._known[name] = dict(values)
        self._pooled = None

    def without(self, name: str) -> Noise:
        """Return what is known but for what was measured of `name`."""
        return Noise(self.declared, {each: values for each, values in self._known.items() if each != name})

    def declare(self, scale: str) -> None:
        """Take another declared scale, or with an empty name let the measurements decide."""
        self.declared = scale
        self._pooled = None

    def _pool(self) -> _Pool:
        if self._pooled is None:
            scale = scale_of(self.declared, self._known.values())
            table = {name: {at: scale.to(value) for at, value in row.items()} for name, row in self._known.items()}
            layout = found if (found := two_way(table)) and found.common else None
            known = [Estimate.of(values.values()) for values in table.values()]
            freedom = sum(each.times - 1 for each in known)
            variance = math.fsum(each.squares for each in known) / freedom if freedom else math.inf
            if layout:
                variance, freedom = layout.spread + layout.variance, len(layout.effects) - 1
            self._pooled = _Pool(scale, variance, freedom, layout)
        return self._pooled

    @property
    def scale(self) -> Scale:
        """The scale on which variances and margins are."""
        return self._pool().scale

    @property
    def common(self) -> TwoWay | None:
        """What repeats share, where they share noise beyond chance; None where it is independent, or not known yet."""
        return self._pool().layout

    @property
    def measured(self) -> Mapping[str, Mapping[int, float]]:
        """Everything that was measured more than once, by name and repeat."""
        return self._known

    def adjusted(self, name: str) -> float:
        """Return the mean of one that was measured more than once, as far as possible as if by the first repeat alone.

        That of one measured once needs no adjustment, so all can be compared; without common noise it is the mean.
        """
        pool, values = self._pool(), self._known[name]
        if pool.layout is None:
            return pool.scale.mean(list(values.values()))
        effects = pool.layout.effects
        return pool.scale.back(mean([pool.scale.to(value) - effects[repeat] for repeat, value in values.items()]))

    def paired(self, shared: int, level: float = LEVEL) -> float:
        """Half the interval of the mean of so many differences of values with the same repeat, where noise is common.

        Student's t with the variance of the residuals: t * sqrt(2 * variance / n).
        """
        layout = self.common
        assert layout
        return student(level, layout.freedom) * math.sqrt(2 * layout.variance / shared)

    def margin_of_first(self, times: int, level: float = LEVEL) -> float:
        """Half the interval of an `adjusted` mean of so many measurements, where noise is common.

        Student's t with the spread of draws, of which it has one, and the residuals: t * sqrt(spread + variance/n).
        """
        layout = self.common
        assert layout
        return student(level, self.freedom) * math.sqrt(layout.spread + layout.variance / times)

    @property
    def freedom(self) -> int:
        """Degrees of freedom of the variance; 0 while nothing was measured twice."""
        return self._pool().freedom

    @property
    def variance(self) -> float:
        """Of one measurement, on the scale; infinite while nothing was measured twice."""
        return self._pool().variance

    def margin(self, *times: int, level: float = LEVEL) -> float:
        """Half the interval of a mean of so many measurements; of the difference of two means when two are given.

        On the scale, by Student's t (1908) with the pooled variance: t * sqrt(variance * (1/n + 1/m)). Infinite while
        nothing is known.
        """
        pool = self._pool()
        if not pool.variance or not pool.freedom:
            return pool.variance
        return student(level, pool.freedom) * math.sqrt(pool.variance * math.fsum(1 / each for each in times))


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


class Duel(Struct, frozen=True):
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
        return a.mean - b.mean > noise.margin(a.times, b.times, level=shared_level(len(field)))


def shared_level(amount: int) -> float:
    """The confidence of each comparison when one is compared with all others of so many (Bonferroni)."""
    return 1 - (1 - LEVEL) / max(amount - 1, 1)


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
