"""Sets of labelled rows from seeds: mixtures of normal distributions, so that the best classifier is known."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Row = list[float]


@dataclass(frozen=True)
class Component:
    """A normal distribution without correlations, and the label of what it brings forth."""

    label: int
    weight: float
    mean: Sequence[float]
    deviation: Sequence[float]

    def draw(self, rng: random.Random) -> Row:
        """A row, with four decimals."""
        return [round(rng.gauss(m, d), 4) for m, d in zip(self.mean, self.deviation, strict=True)]

    def density(self, row: Row) -> float:
        """How likely it is to bring forth this row, up to a factor that all components of a set share."""
        distance = math.fsum(((x - m) / d) ** 2 for x, m, d in zip(row, self.mean, self.deviation, strict=True))
        return self.weight * math.exp(-distance / 2) / math.prod(self.deviation)


def drawn(components: Sequence[Component], count: int, rng: random.Random) -> tuple[list[Row], list[int]]:
    """Rows in random order, and their labels."""
    chosen = rng.choices(components, [each.weight for each in components], k=count)
    return [each.draw(rng) for each in chosen], [each.label for each in chosen]


def likeliest(components: Sequence[Component], row: Row) -> int:
    """The label that the Bayes classifier gives, which knows the distributions; no other one is right more often."""
    shares: dict[int, float] = {}
    for each in components:
        shares[each.label] = shares.get(each.label, 0.0) + each.density(row)
    return max(shares, key=lambda label: shares[label])


def shifted(components: Sequence[Component]) -> list[Component]:
    """The same, but that the lowest label is four times as frequent."""
    lowest = min(each.label for each in components)
    return [
        Component(each.label, each.weight * (4 if each.label == lowest else 1), each.mean, each.deviation)
        for each in components
    ]


def blobs(rng: random.Random) -> list[Component]:
    """Three classes, each a blob of its own size."""
    angle = rng.uniform(0, math.tau)
    middles = [(2 * math.cos(angle + turn), 2 * math.sin(angle + turn)) for turn in (0, 2.1, 4.2)]
    return [Component(i, 1, middle, (0.5 + 0.4 * i,) * 2) for i, middle in enumerate(middles)]


def inside(rng: random.Random) -> list[Component]:
    """A class within the wide spread of another one, around the same middle."""
    middle = (rng.uniform(-1, 1), rng.uniform(-1, 1))
    return [Component(0, 1, middle, (0.6, 0.6)), Component(1, 1, middle, (2.4, 2.4))]


def corners(rng: random.Random) -> list[Component]:
    """Each class in two opposite corners of a square."""
    side = rng.uniform(1.2, 1.6)
    return [Component(int(x * y > 0), 1, (x * side, y * side), (0.7, 0.7)) for x in (-1, 1) for y in (-1, 1)]


def arcs(rng: random.Random) -> list[Component]:
    """Two half circles that reach into each other."""
    turn = rng.uniform(0, math.pi)
    steps = [turn + math.pi * step / 9 for step in range(10)]
    upper = [Component(0, 1, (2 * math.cos(a), 2 * math.sin(a)), (0.35, 0.35)) for a in steps]
    dx, dy = 2 * math.cos(turn) - 0.8 * math.sin(turn), 2 * math.sin(turn) + 0.8 * math.cos(turn)
    lower = [Component(1, 1, (dx - 2 * math.cos(a), dy - 2 * math.sin(a)), (0.35, 0.35)) for a in steps]
    return upper + lower


def noisy(rng: random.Random) -> list[Component]:
    """Two of eight numbers tell the classes apart; the others are larger, and tell nothing."""
    which = rng.sample(range(8), 2)
    means = [[sign * 0.9 if i in which else 0.0 for i in range(8)] for sign in (-1, 1)]
    return [
        Component(label, 1, mean, [0.7 if i in which else 3.0 for i in range(8)]) for label, mean in enumerate(means)
    ]


def units(rng: random.Random) -> list[Component]:
    """Four classes, rare and frequent, one number of which is in a unit a hundred times smaller."""
    middles = [(rng.uniform(-2, 2), rng.uniform(-200, 200)) for _ in range(4)]
    return [Component(i, 4 - i, middle, (0.7, 70.0)) for i, middle in enumerate(middles)]


FAMILIES: list[Callable[[random.Random], list[Component]]] = [blobs, inside, corners, arcs, noisy, units]
