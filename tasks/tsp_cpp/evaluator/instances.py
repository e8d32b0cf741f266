"""Cities from seeds: uniform in the unit square, and in clusters, with the best lengths found for them."""

import math
import random
from dataclasses import dataclass

City = tuple[float, float]
"""Coordinates in sides of the square, with six decimals."""


@dataclass(frozen=True)
class Instance:
    """Cities to visit, and how long the best tour is that was found when the task was written."""

    name: str
    cities: list[City]
    known: float


def uniform(n: int, seed: int) -> list[City]:
    """n cities drawn uniformly from the unit square."""
    rng = random.Random(f"uniform {n} {seed}")
    return [(round(rng.random(), 6), round(rng.random(), 6)) for _ in range(n)]


def clustered(n: int, seed: int) -> list[City]:
    """n cities around ten centres, at a distance that is normal with a deviation of 0.03, within the square."""
    rng = random.Random(f"clustered {n} {seed}")
    centres = [(rng.uniform(0.1, 0.9), rng.uniform(0.1, 0.9)) for _ in range(10)]
    return [around(rng.choice(centres), rng) for _ in range(n)]


def around(centre: City, rng: random.Random) -> City:
    x, y = (min(max(rng.gauss(value, 0.03), 0.0), 1.0) for value in centre)
    return round(x, 6), round(y, 6)


def length(cities: list[City], order: list[int]) -> float:
    """The length of the closed tour."""
    return math.fsum(math.dist(cities[a], cities[b]) for a, b in zip(order, order[1:] + order[:1], strict=True))
