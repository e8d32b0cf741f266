"""What was done in a run, counted, in words."""

from __future__ import annotations

from evogit.cli.text import count
from evogit.history import History


def count_words(history: History) -> list[str]:
    """What was done so far, in a few words each."""
    counts = history.counts
    rest = [
        (counts.repeated, "repeat"),
        (counts.cached, "cached"),
        (counts.duplicates, "duplicate"),
        (counts.alike, "of them nearly the same"),
        (counts.failed_proposals, "failed proposal"),
        (len(history.pending), "pending"),
    ]
    words = [f"{counts.evaluated:,} evaluated", f"{counts.failed:,} failed"]
    words += [count(amount, noun) if noun[0] in "dfr" else f"{amount:,} {noun}" for amount, noun in rest if amount]
    return words
