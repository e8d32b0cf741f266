"""What is evaluated on the holdout once a run ends: the seed, and the best or a front of them."""

from __future__ import annotations

import asyncio

from evogit.core import HOLDOUT
from evogit.engine.evaluations import Evaluations
from evogit.history.context import RunContext
from evogit.selection.pareto import front, several

FRONT = 24
"""Candidates of a front that are evaluated on the holdout at most, the best by the primary metric."""


async def evaluate_on_holdout(context: RunContext, evaluations: Evaluations, hurry: asyncio.Event) -> None:
    """Evaluate the seed and the best, or the whole front, on the holdout, if there is one and they were not yet.

    Where scores are noisy, valid ones so many times more as a would-be best is repeated, unless `hurry` is set.
    """
    if HOLDOUT not in context.task.splits:
        return
    history = context.history
    unbeaten = front(history)[:FRONT] if several(history) else []
    for commit in filter(None, dict.fromkeys([history.seed, history.best, *unbeaten])):
        for repeat in range(history.repeats + 1):
            known = history.evaluation(commit, HOLDOUT)
            if repeat and (hurry.is_set() or not (known and known.ok)):
                break
            if not history.judged(commit, HOLDOUT, repeat):
                await evaluations.finish(commit, HOLDOUT, repeat)
