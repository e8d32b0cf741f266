"""People compare candidates: which pair next, what they say, and how all stand by then."""

from __future__ import annotations

import math
import random
from collections.abc import Collection

from msgspec import Struct

from evogit.core import NotFoundError, RefusedError, UsageError
from evogit.events import Compared
from evogit.history import History
from evogit.history.context import StoredRun
from evogit.history.strengths import Strengths


class Standing(Struct, frozen=True):
    """A valid candidate, its strength with half of the 95 % interval, and how many verdicts it is known by."""

    commit: str
    strength: float
    margin: float
    verdicts: int


def strengths_of(history: History) -> Strengths:
    """The verdicts of a run. Raises NotFoundError, RefusedError: it has not started, or is measured."""
    if history.strengths is None:
        raise RefusedError(
            f"candidates of the run {history.run} are ranked by {history.metric.name}, which is measured; pairs are "
            'compared where the task says kind = "judge"'
        )
    return history.strengths


def next_pair(history: History, rng: random.Random, skipped: Collection[frozenset[str]] = ()) -> tuple[str, str]:
    """The pair, none `skipped`, whose comparison tells most of the best. Raises NotFoundError: there is none."""
    strengths = strengths_of(history)
    valid = [each.commit for each in standings(history, margins=False)]
    if len(valid) < 2:
        raise NotFoundError("expected two valid candidates to compare; `evogit run` makes more")
    last = strengths.verdicts[-1] if strengths.verdicts else None
    avoid = {*skipped, *([frozenset((last.a, last.b))] if last and len(valid) > 2 else [])}
    known = strengths.fit
    top = max(known.strength(each) for each in valid)
    # those whose strength may be that of the strongest first: the rest is not worth a person's time
    contenders = [each for each in valid if known.strength(each) + 2 * math.sqrt(known.variance(each)) >= top]
    for among in (contenders, valid):
        for pair in strengths.pairs(among, rng, avoid):
            return pair
    raise NotFoundError("no pair is left that was not skipped")


def say(run: StoredRun, verdict: Compared) -> None:
    """Journal what a person said. Raises RefusedError, UsageError: the two cannot be compared."""
    history = run.history
    strengths_of(history)
    if verdict.a == verdict.b:
        raise UsageError(f"expected two candidates, got {verdict.a[:7]} twice")
    for commit in (verdict.a, verdict.b):
        if history.fitness(commit) is None or commit in history.pruned:
            raise RefusedError(f"{commit[:7]} is not valid, not judged yet, or pruned, so it is not compared")
    run.journal.append(verdict)


def standings(history: History, *, margins: bool = True) -> list[Standing]:
    """All valid candidates that are not pruned, the strongest first; margins take a moment where there are many."""
    strengths, found = strengths_of(history), list[Standing]()
    for commit in strengths.commits():
        strength = history.fitness(commit)
        if strength is not None and commit not in history.pruned:
            margin = (strengths.margin(commit) or 0.0) if margins else 0.0
            found.append(Standing(commit, strength, margin, strengths.met(commit)))
    return sorted(found, key=lambda each: -each.strength)
