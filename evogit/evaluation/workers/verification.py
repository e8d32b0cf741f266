"""`--trust verify`: some of what workers answer is evaluated again here, and a worker that lies is left out.

Words of workers are for people alone: agents read what this machine itself found, and numbers.
"""

from __future__ import annotations

import math
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import ge
from statistics import fmean, stdev

from msgspec.structs import replace

from evogit.core import Evaluation, Evidence, Metric

Result = tuple[Evaluation, Evidence]
Asked = tuple[str, str, int]
"""A tree, a split, and which repeat."""

SHARE = 0.1
"""Of what a worker says, drawn at random, so that it cannot know which; all that would be a new best comes on top."""

FIRST = 2
"""What a worker says at first is looked into in any case."""

MORE = 4
"""Further evaluations here of what differs, which tell whether scores are noisy."""

FAR = 10.0
"""Standard deviations beyond which a value is not noise."""

CHANCES = 2
"""Differences that may have another cause (noise, a busy machine), with the last of which a worker is left out."""

CLIP = 3.0
"""Standard deviations that one answer adds at most to how far a worker's scores lean to one side."""

LEANS = 5.5
"""How far they may lean, in standard deviations of the sum for a worker whose noise is that of this machine."""

LEAST_LEANING = 4
"""Answers, not chosen by their values, from which on that is asked."""

UNHEARD = "evaluated by a worker, whose words are kept for people"
"""The reason that agents read where a worker's answer was not looked into here."""

SAME = 1e-9
"""Relative difference of values that count as equal: processors round differently."""


@dataclass(slots=True)
class WorkerStanding:
    """A record of one worker: how much held, how often it differed, and what was believed unseen.

    `lean` sums how far its scores were above or below those of this machine in `leaning` answers.
    """

    held: int = 0
    differed: int = 0
    lean: float = 0.0
    leaning: int = 0
    unseen: set[Asked] = field(default_factory=set)
    out: bool = False


@dataclass(slots=True)
class WorkerVerification:
    """Looks into what workers say, at random at most `places` answers at a time.

    `doubted` has what a worker that is left out had said and nobody looked into, with the reason: it is to be
    evaluated again. `others` are the metrics over which the run searches as well.
    """

    metric: Metric
    places: int
    rng: random.Random
    others: Sequence[Metric] = ()
    doubted: dict[Asked, str] = field(default_factory=dict)
    _standings: dict[str, WorkerStanding] = field(default_factory=dict)
    _fronts: dict[str, list[tuple[float, ...]]] = field(default_factory=dict)
    """Split -> values, larger is better, that were verified and that no other verified answer reaches."""
    _busy: int = 0
    _names: set[str] = field(default_factory=set)
    """Names of cases, stages and numbers that this machine itself has found."""

    async def of(
        self, worker: str, asked: Asked, said: Result, again: Callable[[], Awaitable[Result]]
    ) -> tuple[Result, str]:
        """Return the result to believe, and why the worker is to be left out; empty if it is not.

        Results of `again`, made here, are taken with their words; of others agents get the numbers alone.
        """
        standing = self._standings.setdefault(worker, WorkerStanding())
        verify, fair = self._drawn(standing, asked, said[0]) if said[0].counts else (True, False)
        if not verify:
            standing.unseen.add(asked)
            return unheard(worker, said), ""
        own = await self._evaluated_here(said, again)
        self._names.update(*(_names(evaluation) for evaluation, _ in own))
        believed, why = self._weighed(worker, said, own)
        if not why and fair:  # a new best was chosen for its value
            why = self._leaning(worker, said[0], [evaluation for evaluation, _ in own])
        if self._leads(believed[0]):
            values, front = self._values(believed[0]), self._fronts.get(believed[0].split, [])
            rest = [verified for verified in front if not all(map(ge, values, verified))]
            self._fronts[believed[0].split] = [*rest, values]
        return believed, why

    async def _evaluated_here(self, said: Result, again: Callable[[], Awaitable[Result]]) -> list[Result]:
        """Return this machine's results: one where it agrees, else enough of them to show noise."""
        self._busy += 1
        try:
            own = [await again()]
            if own[0][0].counts and not same(said[0], [own[0][0]]):
                own += [await again() for _ in range(MORE)]
        finally:
            self._busy -= 1
        return own

    def _drawn(self, standing: WorkerStanding, asked: Asked, evaluation: Evaluation) -> tuple[bool, bool]:
        """Return whether an answer is verified, and whether its values had no part in that choice.

        Repeats decide about a best, so they are; so is an answer with names that this machine has not found.
        """
        by_chance = self.rng.random() < SHARE and self._busy < self.places
        first = standing.held < FIRST or asked[2] > 0
        new = standing.out or self._leads(evaluation) or not _names(evaluation) <= self._names
        return first or new or by_chance, first or by_chance

    def _leads(self, evaluation: Evaluation) -> bool:
        """Return whether nothing that was looked into before is as good in all that counts."""
        values = self._values(evaluation)
        front = self._fronts.get(evaluation.split, ())
        return evaluation.ok and not any(all(map(ge, verified, values)) for verified in front)

    def _values(self, evaluation: Evaluation) -> tuple[float, ...]:
        metrics = (self.metric, *self.others)
        return tuple(each.sign * evaluation.metrics.get(each.name, -math.inf * each.sign) for each in metrics)

    def _weighed(self, worker: str, said: Result, own: Sequence[Result]) -> tuple[Result, str]:
        standing = self._standings[worker]
        counted = [result for result in own if result[0].counts]
        found = [evaluation for evaluation, _ in counted]
        if not found:  # then it cannot be told
            return unheard(worker, said) if said[0].counts else own[0], ""
        if same(said[0], found):
            standing.held += 1
            return counted[0], ""
        standing.differed += 1
        certain = _is_exact(found) and "timeout" not in (said[0].status, found[0].status)  # no noise, no clock
        if standing.differed < CHANCES and not certain:
            return counted[0], ""
        return counted[0], self._doubt(worker, f"it says {told(said[0])} where this machine finds {told(found[0])}")

    def _leaning(self, worker: str, said: Evaluation, own: Sequence[Evaluation]) -> str:
        """Why a worker is left out whose noisy scores are better or worse on the whole; empty if they are not."""
        name, standing = self.metric.name, self._standings[worker]
        values = [each.metrics[name] for each in own if each.ok]
        if standing.out or not said.ok or len(values) <= MORE or (spread := stdev(values)) <= 0:
            return ""
        distance = (said.metrics[name] - fmean(values)) / (spread * math.sqrt(1 + 1 / len(values)))
        standing.lean += max(-CLIP, min(CLIP, distance))
        standing.leaning += 1
        if standing.leaning < LEAST_LEANING or abs(standing.lean) <= LEANS * math.sqrt(standing.leaning):
            return ""
        side = "above" if standing.lean > 0 else "below"
        return self._doubt(worker, f"its {name} was {side} what this machine finds in {standing.leaning} evaluations")

    def _doubt(self, worker: str, why: str) -> str:
        """Have what a worker said unseen evaluated again; the reason."""
        standing = self._standings[worker]
        standing.out = True
        self.doubted |= dict.fromkeys(standing.unseen, f"the worker {worker} is not believed any more: {why}")
        standing.unseen.clear()
        return why


def unheard(worker: str, said: Result) -> Result:
    """A worker's answer with its numbers alone for agents; its words are kept for people, with its name."""
    evaluation, evidence = said
    words = [*filter(None, (evaluation.reason, evidence.log, *map(": ".join, evidence.feedback.items())))]
    if words or evidence.stdout or evidence.stderr:
        words.insert(0, f"told by the worker {worker}, and not looked into here:")
    reason = evaluation.reason and UNHEARD
    return replace(evaluation, reason=reason), replace(evidence, log="\n".join(words), feedback={}, unshown=True)


def _names(evaluation: Evaluation) -> set[str]:
    named = (evaluation.cases, evaluation.stages)
    return {name for each in named for case, numbers in each.items() for name in (case, *numbers)}


def same(said: Evaluation, own: Sequence[Evaluation]) -> bool:
    """Whether what was said is what was found here, but for the noise that is seen here."""
    if _is_exact(own):
        return _is_exact([own[0], said])
    alike = [each for each in own if each.status == said.status]
    if len(alike) < 2 or not said.ok:
        return bool(alike)
    return all(_is_near(value, [each.metrics[name] for each in alike]) for name, value in said.metrics.items())


def _is_exact(evaluations: Sequence[Evaluation]) -> bool:
    first = evaluations[0]
    return all(
        each.status == first.status
        and _are_close(each.metrics, first.metrics)
        and (not first.ok or each.cases.keys() == first.cases.keys())
        and all(_are_close(each.cases[case], metrics) for case, metrics in first.cases.items() if first.ok)
        for each in evaluations
    )


def _are_close(some: Mapping[str, float], others: Mapping[str, float]) -> bool:
    return some.keys() == others.keys() and all(_is_close(value, others[name]) for name, value in some.items())


def _is_close(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=SAME, abs_tol=1e-12)


def _is_near(value: float, found: Sequence[float]) -> bool:
    return _is_close(value, fmean(found)) or abs(value - fmean(found)) <= FAR * stdev(found)


def told(evaluation: Evaluation) -> str:
    """How an evaluation ended, in a few words."""
    values = ", ".join(f"{name} {value:.10g}" for name, value in evaluation.metrics.items())
    return values or evaluation.status
