"""Whether repeats share their noise, and what is left of it in differences: the two-way layout without interaction."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

CHANCE = 0.001
"""Probability with which independent noise is taken for common; that makes intervals wider, and not wrong."""

ROUNDING = 1e-12  # standard deviation that is put down to rounding, as a share of the largest value
LARGEST = 1e140  # values from here on are not looked at, as their squares would overflow

Table = Mapping[str, Mapping[int, float]]
"""What was measured: name -> repeat -> value; a few may be missing."""


class TwoWay(Struct, frozen=True):
    """Measurements as what a candidate is worth, plus what a repeat adds to all, plus a residual.

    `effects` is what each repeat adds against the first one; `variance` that of a residual, with `freedom` degrees of
    freedom; `spread` that of the effects; `chance` the probability of effects that large where there are none (F test).
    """

    effects: Mapping[int, float]
    variance: float
    freedom: int
    spread: float
    chance: float
    rounded: bool
    """Whether the residuals are no more than rounding, so that more repeats tell nothing new of differences."""

    @property
    def common(self) -> bool:
        """Whether repeats share noise beyond chance."""
        return self.chance < CHANCE


def two_way(table: Table) -> TwoWay | None:
    """The least squares fit of an unbalanced table (Searle, Linear Models, 1971, chapter 7); None if it cannot tell."""
    repeats = sorted({repeat for values in table.values() for repeat in values})
    amount = sum(map(len, table.values()))
    freedom = amount - len(table) - len(repeats) + 1
    largest = max((abs(value) for values in table.values() for value in values.values()), default=0.0)
    if len(table) < 2 or len(repeats) < 2 or freedom < 1 or largest >= LARGEST:
        return None
    centred = [_centred(values) for values in table.values()]
    effects = _effects(centred, repeats)
    if effects is None:
        return None
    residuals = [_centred({repeat: value - effects[repeat] for repeat, value in row.items()}) for row in centred]
    before, after = _squares(centred), _squares(residuals)
    least = (ROUNDING * largest) ** 2
    variance = max(after / freedom, least)
    between = max(before - after, 0.0) / (len(repeats) - 1)
    middle = math.fsum(effects.values()) / len(effects)
    return TwoWay(
        effects=effects,
        variance=variance,
        freedom=freedom,
        spread=math.fsum((value - middle) ** 2 for value in effects.values()) / (len(effects) - 1),
        chance=f_tail(between / variance, len(repeats) - 1, freedom) if variance and between > least else 1.0,
        rounded=after / freedom <= least,
    )


def _centred(values: Mapping[int, float]) -> dict[int, float]:
    middle = math.fsum(values.values()) / len(values)
    return {repeat: value - middle for repeat, value in values.items()}


def _squares(rows: Iterable[Mapping[int, float]]) -> float:
    return math.fsum(value * value for row in rows for value in row.values())


def _effects(centred: Sequence[Mapping[int, float]], repeats: Sequence[int]) -> dict[int, float] | None:
    """What each repeat adds against the first, by the normal equations without the candidates; None if undetermined."""
    place = {repeat: number for number, repeat in enumerate(repeats[1:])}
    matrix = [[0.0] * len(place) for _ in place]
    right = [math.fsum(row[repeat] for row in centred if repeat in row) for repeat in place]
    for row in centred:
        inside = [place[repeat] for repeat in row if repeat in place]
        for at in inside:
            matrix[at][at] += 1.0
            for other in inside:
                matrix[at][other] -= 1 / len(row)
    solved = _solved(matrix, right)
    return None if solved is None else {repeats[0]: 0.0, **dict(zip(place, solved, strict=True))}


def _solved(matrix: list[list[float]], right: list[float]) -> list[float] | None:
    """The solution of a symmetric system by elimination; None where it has none or many."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for at, pivot in enumerate(rows):
        if pivot[at] < 1e-9:  # of sums of 1 and shares of 1
            return None
        for below in rows[at + 1 :]:
            factor = below[at] / pivot[at]
            if factor:
                for column in range(at, len(pivot)):
                    below[column] -= factor * pivot[column]
    found = [0.0] * len(rows)
    for at in reversed(range(len(rows))):
        known = math.fsum(rows[at][column] * found[column] for column in range(at + 1, len(rows)))
        found[at] = (rows[at][-1] - known) / rows[at][at]
    return found


def f_tail(ratio: float, above: int, below: int) -> float:
    """The probability that an F variable with so many degrees of freedom, above and below, is larger than `ratio`."""
    return _beta_share(below / (below + above * ratio), below / 2, above / 2)


def _beta_share(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function by its continued fraction (Abramowitz & Stegun, 1964, 26.5.8)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta_share(1 - x, b, a)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)) / a
    terms = list[float]()
    for m in range(60):
        terms.append(-(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)))
        terms.append((m + 1) * (b - m - 1) * x / ((a + 2 * m + 1) * (a + 2 * m + 2)))
    value = 1.0
    for term in reversed(terms):
        value = 1.0 + term / value
    return front / value
