"""The hidden formulas, in the style of published benchmarks but with numbers of our own, and rows from seeds."""

import random
from dataclasses import dataclass

from expression import Row, read


@dataclass(frozen=True)
class Formula:
    """A formula, and the range of each variable in the rows that programs are given."""

    name: str
    text: str
    ranges: list[tuple[float, float]]

    def values(self, rows: list[Row]) -> list[float]:
        """What the formula says of each row."""
        value = read(self.text, len(self.ranges)).value
        return [value(row) for row in rows]

    def within(self, count: int, seed: str) -> list[Row]:
        """Rows in the range."""
        rng = random.Random(f"{self.name} {seed}")
        return [[rng.uniform(low, high) for low, high in self.ranges] for _ in range(count)]

    def beyond(self, count: int, seed: str) -> list[Row]:
        """Rows of which every variable lies above its range, by up to a quarter of that."""
        rng = random.Random(f"{self.name} beyond {seed}")
        return [[rng.uniform(high, high + (high - low) / 4) for low, high in self.ranges] for _ in range(count)]


LINES = [
    Formula("line", "2.5 * x0 - 1", [(-2, 2)]),
    Formula("plane", "0.5 * x0 - 1.5 * x1 + 2", [(-2, 2), (-2, 2)]),
    Formula("space", "x0 - 2 * x1 + 0.5 * x2 + 1", [(0, 3), (-2, 2), (-2, 2)]),
]
TRAIN = [
    Formula("polynomial", "0.7 * x0**3 - 1.2 * x0**2 + 0.5 * x0 + 0.3", [(-2, 2)]),
    Formula("chirp", "sin(1.5 * x0**2) * cos(x0) - 0.4", [(-1.5, 1.5)]),
    Formula("logarithms", "log(x0 + 1.3) + log(x0**2 + 0.8)", [(0, 3)]),
    Formula("waves", "2.1 * sin(0.9 * x0) * cos(1.4 * x1)", [(-2, 2), (-2, 2)]),
    Formula("lens", "1 / (1 / x0 + 1.7 / x1)", [(1, 4), (1, 4)]),
]
NEW = [
    Formula("damped", "1.8 * exp(-0.7 * x0) * sin(2.2 * x0)", [(0, 4)]),
    Formula("saturation", "x0**2 / (1.6 + x0**2)", [(0, 4)]),
    Formula("distance", "sqrt((x0 - 1)**2 + (x1 + 0.5)**2)", [(-2, 2), (-2, 2)]),
    Formula("energy", "0.5 * x0 * (x1**2 + x2**2)", [(0, 3), (-2, 2), (-2, 2)]),
    Formula("mixed", "1.5 * x0 * x1 + sin(1.2 * x0) - 0.3 * x1**2", [(-2, 2), (-2, 2)]),
]
