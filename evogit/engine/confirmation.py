"""Has noisy candidates evaluated again, a would-be best and the leaders at the end, and the best on the holdout."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from evogit.core import HOLDOUT, StopReason
from evogit.engine.evaluations import Evaluations
from evogit.history.context import RunContext
from evogit.history.leaders import doubtful, field, to_repeat, undecided
from evogit.history.paired_scores import PairedScores
from evogit.selection.pareto import front, several

AT_THE_END = 16
"""Evaluations with which the leaders are told apart at most, times the task's repeats; where no limit is given.

A short run takes no more for that than it took to find them.
"""

AT_MOST = 3
"""Times the task's repeats that the best is measured beside the seed, where that does not tell them apart before."""

OBSERVED_EVERY = 8
"""Candidates after which a reference is evaluated, where values depend on the hour: it costs an eighth."""

UNCONFIRMED = ("interrupted", "asked", "minutes", "error")
"""Reasons to stop after which the leaders may not have been told apart."""


class Confirmation:
    """The repeats of one run; which follow from the journal alone, so that a kill costs none.

    `limit` is on all repeats of the run, `room` says whether there is any for one more; once `hurry` is set the rest is
    the next engine's. Made before its engine starts.
    """

    def __init__(
        self,
        context: RunContext,
        evaluations: Evaluations,
        *,
        hurry: asyncio.Event,
        limit: int | None = None,
        room: Callable[[], bool] = lambda: True,
        show: Callable[[str, str], None] = lambda who, doing: None,
    ) -> None:
        self._journal = context.journal
        self._history = history = context.history
        self._evaluations = evaluations
        self._limit = limit
        self._room = room
        self._hurry = hurry
        self._show = show
        self._one = asyncio.Lock()
        self._seen = 0
        self._basis = object()
        ended = history.stopped is not None and history.stopped.reason not in UNCONFIRMED
        self._confirmed = history.counts.evaluated if ended else None

    async def settle(self) -> bool:
        """Evaluate again until the best can be believed; False when hurry left that to the next engine.

        Half of the limit is kept for the end. Doubt that scores are exact, and the speed of a machine by whose hours
        they differ, are settled by the best.
        """
        if doubtful(self._history):
            async with self._one:
                if self._may(None) and (commit := doubtful(self._history)):
                    await self._again(commit)
        if self._history.scores.unobserved >= OBSERVED_EVERY:
            async with self._one:
                best, scores = self._history.best, self._history.scores
                if best and scores.unobserved >= OBSERVED_EVERY and not self._hurry.is_set():
                    await self._evaluations.finish(best, repeat=1 + scores.latest(best))
        if self._history.repeats and self._news():
            await self._settle(None if self._limit is None else self._limit // 2)
        return not self._hurry.is_set()

    async def _settle(self, limit: int | None) -> None:
        async with self._one:
            while self._may(limit) and (commit := to_repeat(self._history)) and await self._again(commit):
                pass

    def _news(self) -> bool:
        """Whether there may be another contender: one that came since the last look, or what people decided."""
        history, scores = self._history, self._history.scores
        new, self._seen = scores.log[self._seen :], len(scores.log)
        basis, self._basis = self._basis, (id(scores), history.best, len(history.decisions))
        best = history.best
        return basis != self._basis or best is None or any(history.fitter(commit, best) for commit in new)

    def _may(self, limit: int | None) -> bool:
        self._journal.refresh()
        spent = self._history.counts.repeated
        return not self._hurry.is_set() and (limit is None or spent < limit) and self._room()

    async def _again(self, commit: str) -> bool:
        reference = self._history.best if self._history.scores.paired else None
        return await self._beside(commit, None if reference == commit else reference)

    async def _beside(self, commit: str, reference: str | None) -> bool:
        """Evaluate once more; False where that says nothing, as on a machine that is too busy."""
        repeat = 1 + self._history.scores.latest(commit)
        return await self._evaluations.finish(commit, repeat=repeat, reference=reference)

    async def confirm(self, reason: StopReason) -> bool:
        """Tell the leaders apart: the best from whoever it leads least surely, until it is separated from all.

        What is left undecided when the allowance is used up is a tie, and told as one. Without a limit of its own
        nothing is done when the time is over, or when an engine that ended well did it before. False when a person
        was in a hurry meanwhile.
        """
        if not self._history.repeats or self._hurry.is_set():
            return True
        await self._settle(self._limit)
        if self._limit is not None or not (reason == "minutes" or self._confirmed == self._history.counts.evaluated):
            await self._tell_apart()
            await self._settle(self._limit)
            await self._beside_the_seed()
        return not self._hurry.is_set()

    async def _tell_apart(self) -> None:
        history, limit = self._history, self._limit
        allowance = min(AT_THE_END * history.repeats, history.counts.evaluated)
        end = history.counts.repeated + allowance if limit is None else limit
        while self._may(end):
            found = undecided(history)
            if found is None:
                break
            paired = history.scores.paired
            commit = found.rival if paired else found.next(field(history))
            self._show("leaders", f"evaluating {commit[:7]} again")
            if not await self._beside(commit, found.leader if paired else None):
                break
        self._show("leaders", "")

    async def _beside_the_seed(self) -> None:
        """Measure the gain of the best over the seed side by side, as a person who lands it would."""
        history, scores = self._history, self._history.scores
        while isinstance(scores, PairedScores) and (best := history.best) and self._may(self._limit):
            seed = history.seed or ""
            times = scores.pairs.times(best, seed) / history.repeats
            if best == seed or times >= AT_MOST or (times >= 1 and scores.surely_better(best, seed)):
                break
            self._show("leaders", f"evaluating {best[:7]} beside the seed")
            if not await self._beside(best, seed):
                break


# --- on the holdout -----------------------------------------------------------------------------------------------

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
