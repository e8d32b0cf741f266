"""The best value so far as a small SVG, without a library."""

from __future__ import annotations

import html
from collections.abc import Sequence

from evogit.history.standing import decimals

WIDTH, HEIGHT = 520, 180
LEFT, BOTTOM, TOP = 76, 24, 10

MOST = 1000
"""Steps that are drawn, evenly taken."""


def svg(curve: Sequence[tuple[int, float]], name: str) -> str:
    """Steps from value to value, in the colour of the text around them; empty where there are none."""
    if not curve:
        return ""
    last = curve[-1][0]
    low, high = min(value for _, value in curve), max(value for _, value in curve)
    span = high - low

    def x(count: int) -> float:
        return LEFT + (WIDTH - LEFT - 8) * (count - 1) / max(last - 1, 1)

    def y(value: float) -> float:
        share = (value - low) / span if span else 0.5
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - share)

    steps = _thinned([each for at, each in enumerate(curve) if not at or each[1] != curve[at - 1][1]])
    (first, value), *rest = steps
    path = (
        f"M{x(first):.1f},{y(value):.1f}" + "".join(f"H{x(at):.1f}V{y(to):.1f}" for at, to in rest) + f"H{x(last):.1f}"
    )
    digits = decimals(low, high)
    labels = [
        _text(LEFT - 6, TOP + 4, f"{high:.{digits}f}", "end"),
        _text(LEFT - 6, HEIGHT - BOTTOM, f"{low:.{digits}f}" if span else "", "end"),
        _text(LEFT, HEIGHT - 6, "1", "start"),
        _text(WIDTH - 8, HEIGHT - 6, f"{last:,} evaluations", "end"),
        _text((LEFT + WIDTH) / 2, HEIGHT - 6, f"best {name} so far", "middle"),
    ]
    axis = f"M{LEFT},{TOP}V{HEIGHT - BOTTOM}H{WIDTH - 8}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}">'
        f'<path d="{axis}" fill="none" stroke="currentColor" stroke-opacity="0.4"/>'
        f'<path d="{path}" fill="none" stroke="#0072B2" stroke-width="2"/>{"".join(labels)}</svg>'
    )


def _thinned(steps: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """No more than MOST of them, the last one always."""
    stride = -(-len(steps) // MOST)
    return [*steps[:-1:stride], steps[-1]]


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return (
        f'<text x="{x:.0f}" y="{y:.0f}" font-size="11" font-family="sans-serif" fill="currentColor" '
        f'text-anchor="{anchor}">{html.escape(text)}</text>'
    )
