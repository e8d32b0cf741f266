"""Lines that come back: what a candidate adds although an ancestor had taken it out, often for a reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import lru_cache

from evogit.core import Candidate
from evogit.history import History
from evogit.repository import ChangedLines, Repository

FARTHEST = 12  # ancestors that are looked at, the nearest first
MOST_STEPS = 2_000  # changes from parent to child that are remembered, since relatives share them


class Readded:
    """Compares what candidates of one run added with what their ancestors removed, in files that are `wanted`."""

    def __init__(self, repository: Repository, history: History, wanted: Callable[[str], bool] = lambda path: True):
        self._repository = repository
        self._history = history
        self._wanted = wanted
        self._step = lru_cache(MOST_STEPS)(self._read_step)

    def by(self, candidate: Candidate) -> dict[str, int]:
        """Ancestor -> how many lines it removed last that the candidate adds again; the nearest ancestor first."""
        if not candidate.parents:
            return {}
        added = Counter(self._step(candidate).added)
        found: dict[str, int] = {}
        for _ in range(FARTHEST):
            candidate = self._history.phylogeny[candidate.parents[0]]
            if not added or not candidate.parents:
                break
            back = added & self._step(candidate).removed
            if back:
                found[candidate.commit] = back.total()
            added -= back
        return found

    def _read_step(self, candidate: Candidate) -> ChangedLines:
        parent = self._history.phylogeny[candidate.parents[0]]
        return self._repository.lines(parent.tree, candidate.tree, self._wanted)
