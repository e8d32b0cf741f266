"""What the run has taught about the ways of changing code: which of them made children better of late."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from evogit.agents import OperatorCredit
from evogit.history import History

WINDOW = 200
"""Judged candidates that are looked at, the latest ones: what paid early in a run need not pay late."""


def experience(history: History) -> Mapping[str, OperatorCredit]:
    """How often each way of changing code was tried and made a child that is fitter than its first parent.

    A way is a part of a candidate's strategy, with its step and without: `perturb_number@0.01+swap_name` counts for
    three. The same judged candidates give the same tallies, so that a run which goes on knows what it knew.
    """
    tries, gains = Counter[str](), Counter[str]()
    for commit in history.judgements[-WINDOW:]:
        candidate = history.phylogeny[commit]
        if not candidate.strategy or not candidate.parents:
            continue
        ways = {*candidate.ways, *candidate.strategy.split("+")}
        tries.update(ways)
        if history.fitter(commit, candidate.parents[0]):
            gains.update(ways)
    return {way: OperatorCredit(tries[way], gains[way]) for way in sorted(tries)}
