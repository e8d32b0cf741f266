"""The scale on which noise is alike for all values: the metric's own unit, or its logarithm."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

LEAST = math.ulp(0.0)
"""The smallest positive number: on a log scale it stands for zero and for negative values."""

EVIDENCE = math.log(100)
"""Logarithm of the likelihood ratio from which measurements are taken to have noise in proportion to their values."""

LARGEST = 0.5
"""Standard deviation of logarithms up to which that is looked for: beyond it, values near zero would decide."""


def mean(values: Sequence[float]) -> float:
    """Return the arithmetic mean; of equals exactly their value. Large values do not overflow."""
    return math.fsum(value / len(values) for value in values) if min(values) < max(values) else values[0]


class Scale(Struct, frozen=True):
    """The unit itself, or with `log` its natural logarithm, on which a factor is a difference."""

    log: bool = False

    def to(self, value: float) -> float:
        """Put a value in the metric's unit on the scale."""
        return math.log(max(value, LEAST)) if self.log else value

    def back(self, place: float) -> float:
        """Return the value in the metric's unit; infinite where no number is that large."""
        return _exp(place) if self.log else place

    def mean(self, values: Sequence[float]) -> float:
        """Return the mean in the metric's unit: on a log scale the geometric one; of equals just their value."""
        if not self.log or min(values) == max(values):
            return mean(values)
        return min(max(_exp(mean([self.to(value) for value in values])), min(values)), max(values))

    def interval(self, value: float, margin: float) -> tuple[float, float]:
        """Return the interval around a value; `margin` is half of it on the scale. A log scale makes it a factor."""
        if not self.log or math.isinf(margin):
            return value - margin, value + margin
        return value * _exp(-margin), value * _exp(margin)

    def half(self, value: float, margin: float) -> float:
        """Return half the width of that interval, in the metric's unit."""
        return margin if math.isinf(margin) or not self.log else abs(value) * (_exp(margin) - _exp(-margin)) / 2

    def difference(self, over: float, above: float, margin: float) -> tuple[float, float]:
        """Return a difference in the metric's unit, and the least one in that direction that is beyond noise.

        `above` is the difference on the scale to the value `over`, `margin` half of its interval.
        """
        if not self.log:
            return above, margin
        beyond = margin if math.isinf(margin) else abs(self.step(over, math.copysign(margin, above)))
        return self.step(over, above), beyond

    def step(self, over: float, above: float) -> float:
        """Return in the metric's unit what lies so far above the value `over` on the scale; down it ends at zero."""
        if not self.log:
            return above
        near = over > 0 and abs(above) < 1
        return over * math.expm1(above) if near else _exp(self.to(over) + above) - over


LINEAR, LOG = Scale(), Scale(log=True)


def _exp(power: float) -> float:
    return math.exp(power) if power < 709 else math.inf


def scale_of(declared: str, groups: Iterable[Mapping[int, float]]) -> Scale:
    """Return the scale of groups of measurements of the same: the `declared` one ("log", "linear"), or by a test.

    Both scales explain the differences within groups by one normal distribution. The log scale is taken where that
    makes the measurements 100 times as likely: the transformations 1 and 0 of Box & Cox (1964), by the likelihood of
    what is left within the groups (Patterson & Thompson, 1971). Where a value is not positive it is never taken, nor by
    the test where the noise is as large as the values.
    """
    known = [list(values.values()) for values in groups if len(values) > 1]
    if declared == "linear" or any(value <= 0 for values in known for value in values):
        return LINEAR
    return LOG if declared == "log" or _evidence(known) > EVIDENCE else LINEAR


def _evidence(groups: Sequence[Sequence[float]]) -> float:
    """Return the logarithm of how much more likely measurements are with noise in proportion to their values."""
    logs = [[math.log(value) for value in values] for values in groups]
    freedom = sum(len(values) - 1 for values in groups)
    plain, relative = _squares(groups), _squares(logs)
    if not (plain and relative and math.isfinite(plain)) or relative > freedom * LARGEST**2:
        return 0.0
    stretch = math.fsum((len(values) - 1) * mean(values) for values in logs)
    return freedom / 2 * (math.log(plain) - math.log(relative)) - stretch


def _squares(groups: Iterable[Sequence[float]]) -> float:
    """Return the sum of the squared deviations from the groups' means; infinite where squares overflow."""
    deviations = [value - middle for values in groups for middle in [mean(values)] for value in values]
    far = max(map(abs, deviations), default=0.0)
    return math.fsum(each * each for each in deviations) if far < 1e140 else math.inf
