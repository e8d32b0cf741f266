"""How much a set of points dominates together: one number for a front."""

from __future__ import annotations

from collections.abc import Sequence

Point = Sequence[float]

WORK = 1_000_000
"""Slices that are taken at most, about."""


def hypervolume(points: Sequence[Point], reference: Point) -> float | None:
    """The volume between a reference and the points, more being better everywhere; None where it takes too long.

    What is not better than the reference in all dimensions adds nothing. Exact, by slicing the objectives one after
    the other ("HSO", While, Hingston, Barone, Huband, 2006), n^(d - 1) slices.
    """
    inside = [tuple(point) for point in points if all(value > low for value, low in zip(point, reference, strict=True))]
    if len(inside) ** (len(reference) - 1) > WORK:
        return None
    return _volume(inside, tuple(reference))


def _volume(points: Sequence[tuple[float, ...]], reference: tuple[float, ...]) -> float:
    """Slices across the first dimension, the farthest point first: each is what lies beyond, with a dimension less."""
    if not points:
        return 0.0
    if len(reference) == 1:
        return max(point[0] for point in points) - reference[0]
    beyond, volume = list[tuple[float, ...]](), 0.0
    ordered = sorted(points, reverse=True)
    for point, inner in zip(ordered, [*(each[0] for each in ordered[1:]), reference[0]], strict=True):
        beyond.append(point[1:])
        if point[0] > inner:
            volume += (point[0] - inner) * _volume(beyond, reference[1:])
    return volume
