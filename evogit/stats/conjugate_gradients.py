"""Linear equations of graphs: many unknowns, few links."""

from __future__ import annotations

from collections.abc import Sequence


def solve(
    diagonal: Sequence[float], edges: Sequence[tuple[int, int, float]], right: Sequence[float], close: float
) -> list[float]:
    """Solve a symmetric system by preconditioned conjugate gradients (Hestenes & Stiefel 1952).

    The matrix has this `diagonal`, and minus the weight of each of the `edges` (row, column, weight) beside it. Each
    turn takes time by the number of edges, whatever the number of unknowns. The residual's norm is at most the share
    `close` of the first one's in the end.
    """
    x = [0.0] * len(right)
    rest = list(right)
    toward = [r / d for r, d in zip(rest, diagonal, strict=True)]
    size = _dot(rest, toward)
    enough = size * close**2
    for _ in range(2 * len(right)):
        if size <= enough:
            break
        through = [d * p for d, p in zip(diagonal, toward, strict=True)]
        for i, j, about in edges:
            through[i] -= about * toward[j]
            through[j] -= about * toward[i]
        step = size / _dot(toward, through)
        x = [a + step * p for a, p in zip(x, toward, strict=True)]
        rest = [r - step * q for r, q in zip(rest, through, strict=True)]
        scaled = [r / d for r, d in zip(rest, diagonal, strict=True)]
        before, size = size, _dot(rest, scaled)
        toward = [z + size / before * p for z, p in zip(scaled, toward, strict=True)]
    return x


def _dot(a: Sequence[float], b: Sequence[float]) -> float:
    return sum(map(float.__mul__, a, b))
