"""Uses what cases tell of pieces: takes from two candidates what each does better, and tries several pieces at once.

Partition crossover (Tinos, Whitley & Chicano, 2015, "Partition crossover for pseudo-Boolean optimization", FOGA XIII):
where two candidates differ in groups of pieces that have no say in the same cases, the better version of each group can
be told from the cases, and a child with all of these is as good as the two say it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from evogit.history import History
from evogit.knowledge import ROUNDING
from evogit.selection import Move
from evogit.selection.anatomy import Anatomy, Piece
from evogit.selection.linkage import Linkage
from evogit.selection.strategies import PIECES

WINDOW = 100
"""Latest judged candidates that the best one is crossed with."""


class Partition:
    """Plans crossovers by pieces; silent where scores are noisy or all pieces have a say in the same cases."""

    def __init__(self, anatomy: Anatomy) -> None:
        self._anatomy = anatomy
        self._linkage = Linkage(anatomy)

    def move(self, history: History, onto: str, is_mine: Callable[[str], bool]) -> Move | None:
        """The merge by pieces that should improve `onto` most; None where there is none that was not tried.

        Only those with another candidate for which `is_mine` holds.
        """
        if not self._linkage.follow(history):
            return None
        best, found = 0.0, None
        mine = history.scores.cases(onto)
        if not mine:
            return None
        for other in dict.fromkeys(history.judgements[-WINDOW:]):
            theirs = history.scores.cases(other)
            if other == onto or other in history.pruned or history.fitness(other) is None or not is_mine(other):
                continue
            if theirs.keys() != mine.keys() or history.attempts.made("merge", PIECES, (onto, other)):
                continue
            gains = {case: _gain(history, theirs[case], mine[case]) for case in mine}
            if max(gains.values()) <= 0 or min(gains.values()) >= 0:
                continue
            gain, taken = self._better(history, onto, other, gains)
            if gain > best:
                best, found = gain, Move(operator="merge", parents=(onto, other), strategy=PIECES, pieces=taken)
        return found

    def _better(
        self, history: History, onto: str, other: str, gains: Mapping[str, float]
    ) -> tuple[float, frozenset[Piece]]:
        """The pieces that are better in `other`, and what they should gain; none if all of them or none is."""
        differing = self._anatomy.differing(history, onto, other)
        gain, taken = 0.0, set[Piece]()
        for members, cases in self._linkage.links.groups(differing):
            if (part := math.fsum(gains.get(case, 0.0) for case in cases)) > 0:
                gain += part
                taken |= members
        return (gain, frozenset(taken)) if taken != differing else (0.0, frozenset())


def _gain(history: History, value: float, over: float) -> float:
    return 0.0 if math.isclose(value, over, rel_tol=ROUNDING) else history.metric.gain(value, over)
