"""Words and numbers as a person reads them; what candidates and models wrote is made harmless here."""

from __future__ import annotations

from collections.abc import Sequence

from evogit.text import change, escape, measured, number, percent

__all__ = ["age", "bar", "change", "clock", "count", "escape", "measured", "number", "percent", "size", "sparkline"]


def age(seconds: float) -> str:
    """How long ago, in the largest unit that fits: `12s`, `5m`, `3h`, `4d`."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{max(int(seconds), 0)}s"


def clock(seconds: float) -> str:
    """A duration as `0:41` or `1:02:03`."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def count(amount: int, noun: str) -> str:
    """`1 agent`, `1,204 candidates`."""
    return f"{amount:,} {noun}{'' if amount == 1 else 's'}"


def size(amount: int) -> str:
    """Bytes in MB or kB."""
    return f"{amount / 1e6:,.1f} MB" if amount >= 100_000 or not amount else f"{amount / 1e3:,.1f} kB"


def bar(share: float, width: int, full: str, empty: str) -> str:
    """A bar that is filled to `share` of its width."""
    filled = round(min(max(share, 0.0), 1.0) * width)
    return full * filled + empty * (width - filled)


def sparkline(values: Sequence[float], width: int, levels: str, *, falling: bool = False) -> str:
    """Draw values in order of time as at most `width` bars; the best is the highest. `falling`: lower is better."""
    if not values:
        return ""
    step = max(len(values) / width, 1.0)
    picked = [values[min(int((i + 1) * step) - 1, len(values) - 1)] for i in range(min(len(values), width))]
    low, high = min(values), max(values)
    shares = [(value - low) / (high - low) if high > low else 1.0 for value in picked]
    return "".join(levels[round((1 - share if falling else share) * (len(levels) - 1))] for share in shares)
