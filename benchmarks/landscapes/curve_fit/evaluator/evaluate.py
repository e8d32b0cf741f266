"""Compares a model with the hidden curve, section by section."""

import math
from collections.abc import Iterator

from evogit import Case, Invalid

SHIFT = {"train": 0.05, "lite": 0.05, "holdout": 0.0}
"""Where the points of a split begin, as the judge's points are 0.1 apart: those of the holdout lie in between."""


def hidden(x: float) -> float:
    return (1.8 - 0.12 * x) * math.sin(1.35 * x + 0.6) + (0.45 - 0.06 * x) * x - 0.5


POINTS = [step / 100 for step in range(601)]
MEAN = sum(map(hidden, POINTS)) / len(POINTS)
DEVIATION = math.sqrt(sum((hidden(x) - MEAN) ** 2 for x in POINTS) / len(POINTS))


def evaluate(program, split: str) -> Iterator[Case]:
    xs = [step / 10 + SHIFT[split] for step in range(60)]
    found = program.call("model:values", args=[xs], returns=list[float]).value
    if len(found) != len(xs):
        raise Invalid(f"expected {len(xs)} values, got {len(found)}")
    for number, name in enumerate(("low", "middle", "high")):
        section = slice(20 * number, 20 * number + 20)
        error = distance(xs[section], found[section])
        yield Case(name, feedback=f"the error is {100 * error:.3g} % of the deviation", fit=1 / (1 + error))


def distance(xs: list[float], found: list[float]) -> float:
    """The root mean square error in standard deviations of the hidden curve."""
    largest = max(map(abs, found))
    if not largest < 1e6:
        raise Invalid(f"expected values below a million, got {largest:g}")
    squares = [(hidden(x) - value) ** 2 for x, value in zip(xs, found, strict=True)]
    return math.sqrt(sum(squares) / len(squares)) / DEVIATION
