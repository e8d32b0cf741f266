"""The best on each case, kept up to date candidate by candidate."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence

from evogit.history import History
from evogit.selection.index import Index, Ranked, ranked

Solved = tuple[Ranked, tuple[tuple[str, float], ...]]
"""A candidate with its cases and their values, with their signs such that more is better."""


class Leaders(Index[Solved]):
    """The candidates that are best on each case, by the primary metric; of equals there the fittest in all.

    The front of GEPA (Agrawal et al., 2025, arXiv 2507.19457, algorithm 2). There a candidate without which no case
    lacks a leader goes; that equals yield to the fittest in all is what we have in its place.
    """

    def __init__(self) -> None:
        super().__init__()
        self._cases: list[str] = []
        self._best: dict[str, tuple[float, float]] = {}
        self._leaders: dict[str, list[Ranked]] = {}

    def of(self, history: History) -> Sequence[Sequence[Ranked]]:
        """The leaders of each case, in the order of its name; valid until the next question."""
        self.follow(history)
        return [self._leaders[case] for case in self._cases]

    def _value(self, history: History, commit: str) -> Solved:
        sign, cases = history.metric.sign, history.scores.cases(commit)
        return ranked(history, commit), tuple((case, sign * each) for case, each in cases.items())

    def _clear(self) -> None:
        self._cases = []
        self._best = {}
        self._leaders = {}

    def _add(self, value: Solved) -> None:
        candidate, cases = value
        for case, solved in cases:
            worth = (solved, -candidate[0])
            if case not in self._best:
                insort(self._cases, case)
            if case not in self._best or worth > self._best[case]:
                self._best[case], self._leaders[case] = worth, [candidate]
            elif worth == self._best[case]:
                insort(self._leaders[case], candidate)

    def _remove(self, value: Solved) -> bool:
        candidate, cases = value
        for case, solved in cases:
            if (solved, -candidate[0]) == self._best[case]:
                leaders = self._leaders[case]
                del leaders[bisect_left(leaders, candidate)]
                if not leaders:
                    return False
        return True
