"""What the run has taught about the ways of changing code: which of them made children better of late."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from evogit.agents import OperatorCredit
from evogit.history import History
from evogit.history.per_candidate import Lessons

WINDOW = 200
"""Evaluated candidates that are looked at, the latest ones: what paid early in a run need not pay late."""


class _Try(NamedTuple):
    """The ways in which a candidate was made, and whether it is fitter than its first parent."""

    ways: frozenset[str]
    gained: bool


class OperatorCredits:
    """The credit of all ways in one run, kept up to date by looking at each evaluation once.

    The same evaluated candidates give the same credit, so that a run which goes on knows what it knew.
    """

    def __init__(self) -> None:
        self._lessons = Lessons(_tried)
        self._counted: Mapping[str, _Try] = {}
        self._tries = Counter[str]()
        self._gains = Counter[str]()

    def of(self, history: History) -> Mapping[str, OperatorCredit]:
        """How often each way of changing code was tried and made a child that is fitter than its first parent.

        A way is a part of a candidate's strategy, with its step and without: `perturb_number@0.01+swap_name` counts for
        three.
        """
        known, before = self._lessons.of(history, history.judgements[-WINDOW:]), self._counted
        self._counted = known
        for commit, tried in before.items():
            if known.get(commit) is not tried:
                self._tries.subtract(tried.ways)
                self._gains.subtract(tried.ways if tried.gained else ())
        for commit, tried in known.items():
            if before.get(commit) is not tried:
                self._tries.update(tried.ways)
                self._gains.update(tried.ways if tried.gained else ())
        return {way: OperatorCredit(tries, self._gains[way]) for way, tries in sorted(self._tries.items()) if tries}


def _tried(history: History, commit: str) -> _Try:
    candidate = history.phylogeny[commit]
    if not candidate.strategy or not candidate.parents:
        return _Try(frozenset(), gained=False)
    ways = frozenset([*candidate.ways, *candidate.strategy.split("+")])
    return _Try(ways, history.fitter(commit, candidate.parents[0]))
