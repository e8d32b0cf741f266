"""A line for each new best, where somebody sees it."""

from __future__ import annotations

import sys
from typing import TextIO

from evogit.core import Entry, Evaluated
from evogit.history import History
from evogit.history.standing import places
from evogit.text import number, one_line


class Progress:
    """An `Observer` that prints each new best of a run."""

    def __init__(self, history: History, evaluations: int | None, stream: TextIO) -> None:
        """`evaluations` is how many there will be at most, None where something else ends the run."""
        self._history = history
        self._of = f" of {evaluations:,}" if evaluations else ""
        self._stream = stream
        self._best = history.best

    def entry(self, entry: Entry) -> None:
        """Print it if it made a new best."""
        history = self._history
        if not isinstance(entry.event, Evaluated) or history.best in (None, self._best):
            return
        self._best = history.best
        best = history.phylogeny[history.best or ""]
        value = number(history.fitness(best.commit), places(history))
        print(
            f"{history.run} {history.counts.evaluated:,}{self._of}: {history.metric.name} {value}  "
            f"{best.commit[:7]} {one_line(best.title)}",
            file=self._stream,
            flush=True,
        )

    def activity(self, agent: str, doing: str) -> None:
        """What agents do is not told."""


def stream_of_person() -> TextIO | None:
    """Where a person sees what is printed while a run goes on: a terminal, or a notebook; None: nowhere."""
    if "ipykernel" in sys.modules:
        return sys.stdout
    return sys.stderr if sys.stderr is not None and sys.stderr.isatty() else None
