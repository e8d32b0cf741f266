"""What a comparison of methods may claim: areas, paired intervals, tests and their correction; pure functions."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Mapping, Sequence
from statistics import NormalDist

from evogit.stats.estimates import student

RESAMPLES = 10_000  # resamples of a bootstrap, and flips of a test that is too large to be exact
EXACT = 13  # pairs up to which a sign-flip test tries all assignments of signs (2^13 = 8192)
MARGIN = 0.03  # how much of the normalised area a method may lose and still be called no worse
ALPHA = 0.05  # chance of a false claim that is taken


def normalised(value: float, seed: float, top: float) -> float:
    """The share of the way from the seed's value (0) to the `top` value (1); direction drops out.

    0 where there is no way to go.
    """
    if math.isclose(seed, top, rel_tol=1e-12, abs_tol=1e-300):
        return 0.0
    return (value / 2 - seed / 2) / (top / 2 - seed / 2)  # halves: differences of the greatest numbers are none


def area(curve: Sequence[float], evaluations: int) -> float:
    """The mean of a curve over the evaluations 1 to `evaluations`; one that ends early stays where it ended.

    The anytime performance as the area under the best so far (López-Ibáñez & Stützle, 2014, "Automatically improving
    the anytime behaviour of optimisation algorithms"), with normalised values on a linear axis of evaluations.

    Raises:
        ValueError: the curve is empty.
    """
    used = list(curve[:evaluations])
    if not used:
        raise ValueError("expected a curve with at least one value")
    return (math.fsum(used) + used[-1] * (evaluations - len(used))) / evaluations


def interval(differences: Sequence[float], rng: random.Random) -> tuple[float, float]:
    """Bounds of the mean of paired differences: the bootstrap percentile interval (Efron & Tibshirani, 1993, ch. 13).

    Pairs are resampled whole, since runs with equal seeds are alike. What is cut off is less for few pairs: see `tail`.
    """
    n = len(differences)
    means = sorted(math.fsum(rng.choices(differences, k=n)) / n for _ in range(RESAMPLES))
    cut = int(tail(n) * RESAMPLES)
    return means[cut], means[-1 - cut]


def tail(n: int) -> float:
    """The share of resamples beyond each end of a percentile interval of `n` values.

    Resampled means spread too little, and as if the spread were known: plain percentiles of 5 normal values cover the
    mean 82 % of the time, these 92 %. The expanded percentile interval (Hesterberg, 2015, "What teachers should know
    about the bootstrap", The American Statistician 69): the normal probability of -sqrt(n / (n - 1)) * Student's t.
    """
    return NormalDist().cdf(-math.sqrt(n / (n - 1)) * student(1 - ALPHA, n - 1)) if n > 1 else 0.0


def greater(differences: Sequence[float], rng: random.Random, than: float = 0.0) -> float:
    """One-sided p of paired differences having a mean above `than`: the sign-flip test (Fisher, 1935; Good, 2005).

    Exact for few pairs; else by random flips, the observed one among them (Phipson & Smyth, 2010). Differences equal
    to `than` say nothing and weigh nothing.
    """
    shifted = [each - than for each in differences]
    sizes = [abs(each) for each in shifted if each]
    observed = math.fsum(shifted)
    edge = observed - 1e-12 * math.fsum(sizes)  # sums in another order differ in the last digits
    if len(sizes) <= EXACT:
        sums = [math.fsum(each) for each in itertools.product(*((size, -size) for size in sizes))]
        return sum(each >= edge for each in sums) / len(sums)
    total, hits = math.fsum(sizes), 0
    for _ in range(RESAMPLES):
        bits = rng.getrandbits(len(sizes))
        flipped = sum(size for i, size in enumerate(sizes) if bits >> i & 1)
        hits += total - 2 * flipped >= edge
    return (hits + 1) / (RESAMPLES + 1)


def not_inferior(differences: Sequence[float], rng: random.Random, margin: float = MARGIN) -> float:
    """One-sided p of losing less than `margin` on average (Piaggio et al., 2012, CONSORT for non-inferiority trials).

    The sign-flip test of `greater` against a mean of `-margin`.
    """
    return greater(differences, rng, -margin)


def holm(values: Mapping[str, float]) -> dict[str, float]:
    """Adjusted p of a family of tests, by name: the step-down correction of Holm (1979)."""
    adjusted: dict[str, float] = {}
    highest = 0.0
    for rank, name in enumerate(sorted(values, key=lambda each: values[each])):
        highest = max(highest, min((len(values) - rank) * values[name], 1.0))
        adjusted[name] = highest
    return {name: adjusted[name] for name in values}
