"""Uses what cases tell of pieces: takes from two candidates what each does better, and tries several pieces at once.

Partition crossover (Tinos, Whitley & Chicano, 2015, "Partition crossover for pseudo-Boolean optimization", FOGA XIII):
where two candidates differ in groups of pieces that have no say in the same cases, the better version of each group can
be told from the cases, and a child with all of these is as good as the two say it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from evogit.history import History
from evogit.history.state import ROUNDING
from evogit.selection import Move
from evogit.selection.anatomy import Anatomy, Piece
from evogit.selection.linkage import Linkage
from evogit.selection.merge_strategies import PIECES

WINDOW = 100
"""Latest evaluated candidates that the best one is crossed with."""


class PiecesPlan(NamedTuple):
    """The pieces that are better in another candidate, and what they should gain, as a sum over cases."""

    gain: float
    taken: frozenset[Piece]


NOTHING = PiecesPlan(0.0, frozenset())
"""The plan for a candidate that is better everywhere or nowhere, or cannot be compared."""


class Partition:
    """Plans crossovers by pieces; silent where scores are noisy or all pieces have a say in the same cases."""

    def __init__(self, anatomy: Anatomy) -> None:
        self._anatomy = anatomy
        self._linkage = Linkage(anatomy)
        self._known: tuple[str, int] = "", 0
        self._plans: dict[str, PiecesPlan] = {}
        """Other candidate -> what it has for the one that is named in `_known`, by the links of then."""

    def move(self, history: History, onto: str, is_mine: Callable[[str], bool]) -> Move | None:
        """The merge by pieces that should improve `onto` most; None where there is none that was not tried.

        Only those with another candidate for which `is_mine` holds.
        """
        if not self._linkage.follow(history):
            return None
        if self._known != (onto, self._linkage.version):
            self._known = (onto, self._linkage.version)
            self._plans = {}
        best, found = NOTHING, ""
        for other in dict.fromkeys(history.judgements[-WINDOW:]):
            if other not in self._plans:
                self._plans[other] = self._plan(history, onto, other)
            plan = self._plans[other]
            if plan.gain <= best.gain or other in history.pruned or not is_mine(other):
                continue
            if not history.attempts.made("merge", PIECES, (onto, other)):
                best, found = plan, other
        if best is NOTHING:
            return None
        return Move(operator="merge", parents=(onto, found), strategy=PIECES, pieces=best.taken)

    def _plan(self, history: History, onto: str, other: str) -> PiecesPlan:
        mine, theirs = history.scores.cases(onto), history.scores.cases(other)
        if history.fitness(other) is None or theirs.keys() != mine.keys():
            return NOTHING
        gains = {case: _gain(history, theirs[case], mine[case]) for case in mine}
        if not any(gain > 0 for gain in gains.values()) or all(gain >= 0 for gain in gains.values()):
            return NOTHING
        differing = self._anatomy.differing(history, onto, other)
        gain, taken = 0.0, set[Piece]()
        for members, cases in self._linkage.links.groups(differing):
            if (part := math.fsum(gains.get(case, 0.0) for case in cases)) > 0:
                gain += part
                taken |= members
        return PiecesPlan(gain, frozenset(taken)) if taken != differing else NOTHING


def _gain(history: History, value: float, over: float) -> float:
    return 0.0 if math.isclose(value, over, rel_tol=ROUNDING) else history.metric.gain(value, over)
