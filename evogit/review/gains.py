"""What single candidates gained, and the steps by which one came to be."""

from __future__ import annotations

import math
from collections.abc import Iterable

from evogit.core import Candidate, Evaluation
from evogit.history import History


def last_evaluation(history: History, candidate: Candidate) -> Evaluation | None:
    """The last evaluation of a candidate, whatever the task was like then."""
    return history.evaluation(candidate.commit) or history.former(candidate.commit)


def improves(history: History, candidate: Candidate) -> bool:
    """Whether it is fitter than all that it comes from, beyond noise where scores are noisy; rounding is not a gain."""
    commit = candidate.commit
    return all(
        history.surely_fitter(commit, origin) and history.gain(commit, origin) != 0
        for origin in history.origins(commit)
    )


def gain(history: History, commit: str) -> float | None:
    """How much better a candidate is than the fittest valid one that it comes from, be it a parent or an inspiration.

    Negative when worse, None if unknown.
    """
    value = history.fitness(commit)
    return None if value is None else gain_over(history, value, history.origins(commit))


def gain_over(history: History, value: float, origins: Iterable[str]) -> float | None:
    """How much better a value is than that of the fittest valid candidate of some; None where none is valid."""
    scores = history.scores
    known = [each for each in map(scores.fitness, origins) if each is not None]
    if not known:
        return None
    return scores.metric.gain(value, max(known) if scores.metric.direction == "maximize" else min(known))


def relative(value: float, over: float) -> str:
    """A value against another one, as `-45 %` or `1.8x`; empty where that says nothing, or is next to nothing."""
    if min(value, over) <= 0 or not math.isfinite(value / over):
        return ""
    ratio, percent = value / over, 100 * (value / over - 1)
    if ratio >= 1.5:
        return f"{ratio:,.1f}x" if ratio < 10 else f"{ratio:,.0f}x"
    text = f"{percent:+.1f}" if not -99 < percent <= -9.95 and percent < 9.95 else f"{percent:+.0f}"
    return f"{text} %" if any(digit in "123456789" for digit in text) else ""


def way(history: History, commit: str) -> list[tuple[Candidate, float | None]]:
    """How a candidate came to be, from the seed on, so that the gains add up.

    The way leads back along the fittest of parents and inspirations. A gain is over that one; where none was evaluated
    since the task changed, over the last one on the way.
    """
    told: list[tuple[Candidate, float | None]] = []
    last = None
    for each in _ancestors(history, commit):
        value, step = history.fitness(each.commit), gain(history, each.commit)
        if step is None and value is not None and last is not None:
            step = history.metric.gain(value, last)
        last = last if value is None else value
        told.append((each, step))
    return told


def _ancestors(history: History, commit: str) -> list[Candidate]:
    found = [history.phylogeny[commit]]
    while origins := history.origins(found[-1].commit):
        fittest = origins[0]
        for origin in origins[1:]:
            fittest = origin if history.fitter(origin, fittest) else fittest
        found.append(history.phylogeny[fittest])
    return found[::-1]
