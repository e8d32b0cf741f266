"""Judges packings of circles in the unit square: exact, with no tolerance."""

import math
from collections.abc import Iterator
from itertools import combinations

from evogit import Case, Invalid

Circle = tuple[float, float, float]
"""Centre x, centre y and radius, in sides of the square."""

Exact = tuple[int, int, int]
"""The same in whole units, where the unit is small enough for every number of the packing."""

SIZES = {"smoke": [5, 33], "lite": [10], "train": [26], "holdout": [29, 32]}


def evaluate(program, split: str) -> Iterator[Case]:
    for n in SIZES[split]:
        reply = program.call("packing:pack", kwargs={"n": n}, returns=list[Circle])
        yield judge(reply.value, n)


def judge(circles: list[Circle], n: int) -> Case:
    check(circles, n)
    radii = [r for _, _, r in circles]
    total = math.fsum(radii)
    return Case(f"n={n}", feedback=describe(radii), sum_radii=total, of_bound=total / bound(n))


def bound(n: int) -> float:
    """No packing has a larger sum of radii: by Cauchy and Schwarz, (sum r)^2 <= n sum r^2, and pi sum r^2 <= 1."""
    return math.sqrt(n / math.pi)


def describe(radii: list[float]) -> str:
    covered = math.pi * math.fsum(r * r for r in radii)
    return f"radii from {min(radii):.4g} to {max(radii):.4g}; the circles cover {covered:.1%} of the square"


def check(circles: list[Circle], n: int) -> None:
    if len(circles) != n:
        raise Invalid(f"expected {n} circles, got {len(circles)}")
    for i, circle in enumerate(circles):
        if not all(0 <= value <= 1 for value in circle):
            raise Invalid(f"circle {i} is {circle}; expected x, y and radius to be numbers from 0 to 1")
    exact, side = in_units(circles)
    for i, circle in enumerate(exact):
        check_inside(i, circle, side)
    for (i, a), (j, b) in combinations(enumerate(exact), 2):
        check_apart(i, a, j, b, side)


def in_units(circles: list[Circle]) -> tuple[list[Exact], int]:
    """The circles in whole units, and how many units the square's side has.

    A float is a fraction whose denominator is a power of two, so the largest denominator is a common one.
    """
    ratios = [[value.as_integer_ratio() for value in circle] for circle in circles]
    side = max(denominator for circle in ratios for _, denominator in circle)
    return [tuple(numerator * (side // denominator) for numerator, denominator in circle) for circle in ratios], side


def check_inside(i: int, circle: Exact, side: int) -> None:
    x, y, r = circle
    outside = r - min(x, y, side - x, side - y)
    if outside > 0:
        raise Invalid(f"circle {i} sticks out of the square by {outside / side:.3g}")


def check_apart(i: int, a: Exact, j: int, b: Exact, side: int) -> None:
    reach = a[2] + b[2]
    excess = reach**2 - (a[0] - b[0]) ** 2 - (a[1] - b[1]) ** 2
    if excess > 0:
        # reach - distance, from the difference of their squares, which does not lose its digits
        overlap = excess / ((reach + math.isqrt(reach**2 - excess)) * side)
        raise Invalid(f"circles {i} and {j} overlap by {overlap:.3g}")
