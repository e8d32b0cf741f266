"""Estimates the ratio of two candidates from pairs of measurements in the same minutes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median

from evogit.stats.conjugate_gradients import solve
from evogit.stats.estimates import LEVEL, student

CLOSE = 1e-9  # share of the first residual at which the equations are solved
ODD = 4.0  # robust standard deviations from which on a difference is left out: the machine changed between the two
LEAST_FREEDOM = 4  # degrees of freedom that must be left where a difference is left out
TO_DEVIATION = 1.4826  # the standard deviation of a normal distribution over its median absolute deviation
ANCHOR = 1e-6  # weight, in pairs, with which every candidate is held at the seed's value: it joins parts that never met


@dataclass(slots=True)
class Pairs:
    """Differences of logarithms, `log(value / value of the reference)`, each of two measurements in the same minutes.

    A candidate's worth is the least squares fit of all differences, the first reference's being 0. The variance of a
    difference is pooled over all pairs: what the fit leaves over its degrees of freedom (Searle, Linear Models, 1971,
    chapter 5), as in `Noise`. A machine that is slower for both changes nothing.
    """

    taken: dict[tuple[str, int], tuple[str, float]] = field(default_factory=dict)
    """(candidate, its repeat) -> reference, difference; in the order in which they were measured."""
    _fit: Fit | None = field(default=None, metadata={"derived": True})

    def add(self, candidate: str, repeat: int, reference: str, difference: float) -> None:
        """Take in one more pair, in the place of an earlier one of the same repeat."""
        self.taken[candidate, repeat] = reference, difference
        self._fit = None

    @property
    def fit(self) -> Fit:
        """The fit of all pairs so far."""
        if self._fit is None:
            self._fit = sound(Fit([(candidate, *told) for (candidate, _), told in self.taken.items()]))
        return self._fit

    def renamed(self, old: str, new: str) -> Pairs:
        """Return the same pairs, in which `old` is called `new`."""
        names = {old: new}
        return Pairs(
            {(names.get(a, a), at): (names.get(b, b), far) for (a, at), (b, far) in self.taken.items()},
        )

    def times(self, candidate: str, reference: str) -> int:
        """Return how often a candidate was measured beside a reference."""
        return sum(each == candidate and beside == reference for (each, _), (beside, _) in self.taken.items())


@dataclass(frozen=True)
class Fit:
    """The worths that explain some pairs best."""

    taken: Sequence[tuple[str, str, float]]
    """Candidate, reference, difference."""

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Each candidate that was measured in a pair, numbered; the first reference is 0."""
        return {name: number for number, name in enumerate(dict.fromkeys(n for a, b, _ in self.taken for n in (b, a)))}

    @cached_property
    def _met(self) -> Counter[tuple[int, int]]:
        """Return how often each two were measured side by side."""
        return Counter(map(self._link, self.taken))

    def _link(self, pair: tuple[str, str, float]) -> tuple[int, int]:
        a, b = self.numbers[pair[0]], self.numbers[pair[1]]
        return min(a, b), max(a, b)

    @property
    def _edges(self) -> list[tuple[int, int, float]]:
        return [(i, j, times) for (i, j), times in self._met.items()]

    def _solved(self, right: list[float]) -> list[float]:
        diagonal = [ANCHOR] * len(self.numbers)
        for i, j, times in self._edges:
            diagonal[i] += times
            diagonal[j] += times
        return solve(diagonal, self._edges, right, CLOSE)

    @cached_property
    def worths(self) -> dict[str, float]:
        """Candidate -> logarithm of its value over that of the first reference."""
        right = [0.0] * len(self.numbers)
        for a, b, difference in self.taken:
            right[self.numbers[a]] += difference
            right[self.numbers[b]] -= difference
        found = self._solved(right)
        return {name: found[number] - found[0] for name, number in self.numbers.items()}

    @cached_property
    def _parts(self) -> list[int]:
        """Number of a candidate -> the lowest number of those that pairs join it with."""
        part = list(range(len(self.numbers)))
        for i, j, _ in self._edges:
            old, new = max(part[i], part[j]), min(part[i], part[j])
            part = [new if each == old else each for each in part]
        return part

    @cached_property
    def freedom(self) -> int:
        """Degrees of freedom of the variance."""
        return len(self.taken) - len(self.numbers) + len(set(self._parts))

    @cached_property
    def residuals(self) -> list[float]:
        """The part of each difference that the worths do not explain."""
        return [difference - self.worths[a] + self.worths[b] for a, b, difference in self.taken]

    @property
    def deviations(self) -> list[float]:
        """How far each difference is off, over the share of its own error that the fit leaves; 0 where that is none.

        Of n pairs of the same two about 1 / n of an error goes into the fit: all of it in a graph without circles.
        """
        often = [self._met[self._link(pair)] for pair in self.taken]
        return [
            abs(each) / math.sqrt(1 - 1 / times) if times > 1 else 0.0
            for each, times in zip(self.residuals, often, strict=True)
        ]

    @cached_property
    def variance(self) -> float:
        """Of the difference of one pair; infinite while nothing was measured twice."""
        return math.fsum(each**2 for each in self.residuals) / self.freedom if self.freedom else math.inf

    def met(self, a: str, b: str) -> bool:
        """Return whether two candidates were measured beside each other."""
        known = self.numbers
        return a in known and b in known and self._link((a, b, 0.0)) in self._met

    def joined(self, a: str, b: str) -> bool:
        """Return whether pairs join two candidates, directly or through others."""
        known = self.numbers
        return a in known and b in known and self._parts[known[a]] == self._parts[known[b]]

    def difference(self, a: str, b: str, level: float = LEVEL) -> tuple[float, float]:
        """The logarithm of the value of `a` over that of `b`, and half of its interval; infinite if nothing joins them.

        Student's t with the pooled variance times what the fit leaves unsure: the resistance between the two in the
        graph of pairs, each of which is a conductor (Klein & Randić, Resistance Distance, 1993).
        """
        if a == b:
            return 0.0, 0.0
        if not self.joined(a, b):
            return 0.0, math.inf
        above = self.worths[a] - self.worths[b]
        return above, student(level, self.freedom) * self._error(a, b) if self.freedom else math.inf

    def _error(self, a: str, b: str) -> float:
        """The standard error of a difference; looked up where it was asked before."""
        if (a, b) not in self._errors:
            self._errors[a, b] = math.sqrt(self.variance * self._resistance(a, b))
        return self._errors[a, b]

    @cached_property
    def _errors(self) -> dict[tuple[str, str], float]:
        return {}

    def _resistance(self, a: str, b: str) -> float:
        unit = [0.0] * len(self.numbers)
        unit[self.numbers[a]], unit[self.numbers[b]] = 1.0, -1.0
        found = self._solved(unit)
        return max(found[self.numbers[a]] - found[self.numbers[b]], 0.0)


def sound(fit: Fit) -> Fit:
    """The fit without pairs between whose measurements the machine changed, the oddest left out first.

    Hard rejection by the median absolute deviation of the residuals (Hampel, 1974); of normal ones that leaves out one
    in 16 000.
    """
    while fit.freedom > LEAST_FREEDOM:
        far = fit.deviations
        oddest = max(range(len(far)), key=far.__getitem__)
        left = Fit([pair for number, pair in enumerate(fit.taken) if number != oddest])
        usual = TO_DEVIATION * median([each for each in far if each] or [0.0])
        if far[oddest] <= ODD * usual or left.numbers.keys() != fit.numbers.keys():
            break
        fit = left
    return fit
