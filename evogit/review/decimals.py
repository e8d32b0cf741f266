"""How many digits of scores a person is shown, the same wherever they are."""

from __future__ import annotations

import math
from collections.abc import Iterable

from evogit.history import History


def decimals(*values: float | None, margins: Iterable[float | None] = ()) -> int:
    """How many decimals show about five significant digits of the largest value, two of the least margin."""
    size = max((abs(value) for value in values if value and math.isfinite(value)), default=1.0)
    least = min((each for each in margins if each and math.isfinite(each)), default=0.0)
    digits = min(4 - math.floor(math.log10(size)), 1 - math.floor(math.log10(least)) if least else 9)
    return min(max(digits, 0), 9)


def places(history: History) -> int:
    """Decimals of the primary metric, so that the values of a run line up."""
    ends = [commit for commit in (history.seed, history.best) if commit]
    known, margins = [history.fitness(each) for each in ends], [history.scores.margin(each) for each in ends]
    return decimals(*known, history.metric.baseline if not any(known) else None, margins=margins)
