"""Compares a recipe with the ideal one, with Gaussian noise that is frozen per recipe and repeat."""

import math
import random
from collections.abc import Iterator

from evogit import Case, Invalid

IDEAL = [7, 16, 12, 3, 14, 5, 18, 9]
NOISE = 0.05
"""Standard deviation, in units of taste; one step of one amount is worth about 0.015 near the seed."""


def evaluate(program, split: str, rng: random.Random) -> Iterator[Case]:
    amounts = program.call("oven:amounts", returns=list[int]).value
    if len(amounts) != len(IDEAL):
        raise Invalid(f"expected {len(IDEAL)} amounts, got {len(amounts)}")
    exact = taste(amounts)
    if split == "holdout":
        yield Case("exact", taste=exact)
    else:
        taster = random.Random(f"{rng.getrandbits(64)} {amounts}")
        yield Case("taster", taste=exact + taster.gauss(0, NOISE))


def taste(amounts: list[int]) -> float:
    """1 at the ideal, falling with the root mean square distance, which is counted up to 100 in each amount."""
    squares = [min(abs(amount - ideal), 100) ** 2 for amount, ideal in zip(amounts, IDEAL, strict=True)]
    return 1 - math.sqrt(sum(squares) / len(squares)) / 10
