"""How much faster one program is than another: ratios of pairs, and whether they differ from 1 by more than chance."""

import statistics
from collections.abc import Sequence
from math import comb

FEWEST = 8
MOST = 12
"""Pairs that are measured: after the fewest, as many as it takes to tell."""
DOUBT = 0.01
MARGIN = 1.02
"""Ratios up to this one are no gain: so much may differ between two processes that run the same program."""


def interval(ratios: Sequence[float]) -> tuple[float, float]:
    """Bounds of the median by order statistics, wrong in at most one of a hundred cases whatever the noise is like."""
    count, ranked = len(ratios), sorted(ratios)
    outside = 0
    while 2 * sum(comb(count, k) for k in range(outside + 1)) <= DOUBT * 2**count:
        outside += 1
    if outside == 0:
        return 0.0, float("inf")
    return ranked[outside - 1], ranked[-outside]


def decided(ratios: Sequence[float]) -> bool:
    """Whether the ratio is told from 1 by more than the margin."""
    low, high = interval(ratios)
    return low > MARGIN or high < 1 / MARGIN


def speedup(cpu: Sequence[float], wall: Sequence[float]) -> float:
    """The median ratio, of CPU or of wall clock, whichever is smaller; 1 where CPU could be equal.

    A program that lets children work that nobody waits for, or waits for nothing, gains by one of the two alone.
    """
    return min(statistics.median(cpu), statistics.median(wall)) if decided(cpu) else 1.0
