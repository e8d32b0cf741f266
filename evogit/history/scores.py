"""What candidates are worth by their evaluations: the measured values of one task, under which all are comparable."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Self

from msgspec.structs import replace

from evogit.core import Evaluation, Metric
from evogit.history.pages import DERIVED, Pages, fold
from evogit.stats.estimates import LEVEL, Estimate, Noise
from evogit.stats.scales import LINEAR, Scale, mean
from evogit.stats.two_way import ROUNDING

Known = dict[tuple[str, int], Evaluation]
"""The evaluations of one candidate by split and repeat."""


class EvaluationPages(Pages[str, Known]):
    """The evaluations of all candidates."""

    def group(self, value: Known) -> int:
        """Failures apart: of those that are valid most questions are about their values."""
        return min(each.ok for each in value.values())


@dataclass(slots=True)
class Scores:
    """The evaluations of one run under its present task; `metric` ranks, on `split`.

    With `repeats` above 0 values are noisy: a candidate may be evaluated again so often before it is believed, and
    what is known of it are means and intervals. `log` holds an id for each evaluation taken in, so that whoever keeps
    an index looks only at what is new. `declared` are the scales on which metrics have their noise, as far as the task
    says; where it is a log scale means are geometric and intervals factors (`scale`).
    """

    metric: Metric
    split: str
    repeats: int = 0
    log: list[str] = field(default_factory=list)
    _evaluations: EvaluationPages = field(default_factory=EvaluationPages)
    _values: dict[str, float] = field(default_factory=dict)
    """The primary metric on the split that ranks, of those that are valid: what nearly all questions are about."""
    seconds: float = 0.0
    """What the evaluations on the split that ranks took, wall clock; those that were shared took nothing."""
    _together: dict[tuple[str, str], Evaluation] = field(default_factory=dict, metadata=DERIVED)
    _by_case: dict[str, Mapping[str, float]] = field(default_factory=dict, metadata=DERIVED)
    _estimates: dict[tuple[str, str], Estimate] = field(default_factory=dict, metadata=DERIVED)
    _noise: dict[tuple[str, str], Noise] = field(default_factory=dict)
    _again: dict[str, int] = field(default_factory=dict)
    _distinct: set[str] = field(default_factory=set)
    differing: set[str] = field(default_factory=set)
    """Ids of those that came out otherwise when they were evaluated again, on the split that ranks."""
    declared: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, metrics: Sequence[Metric], split: str, repeats: int) -> Self:
        """Begin with no evaluations by these metrics, the primary one of which ranks."""
        primary = next(metric for metric in metrics if metric.primary)
        return cls(primary, split, repeats, declared={metric.name: metric.noise for metric in metrics})

    def declare(self, metrics: Sequence[Metric]) -> None:
        """Take over the scales that these metrics have now."""
        self.declared = {metric.name: metric.noise for metric in metrics}
        for (_, name), noise in self._noise.items():
            noise.declare(self.declared.get(name, ""))
        self._rescale()

    @property
    def scale(self) -> Scale:
        """The scale of the noise of the values that rank."""
        return self.noise().scale

    @property
    def shifting(self) -> bool:
        """Whether what is learnt of some candidates moves the values of all."""
        return False

    @property
    def paired(self) -> bool:
        """Return whether candidates are measured side by side before they are believed."""
        return False

    def measured_beside(self, a: str, b: str) -> bool:
        """Return whether two were measured beside each other, in the same minutes; True where none need be."""
        return True

    @property
    def unobserved(self) -> int:
        """Return how many candidates were evaluated since the pace of the machine was, where that counts."""
        return 0

    def __contains__(self, commit: object) -> bool:
        return commit in self._evaluations

    def commits(self) -> list[str]:
        """Ids of all that have an evaluation."""
        return list(self._evaluations)

    def record(self, commit: str, evaluation: Evaluation) -> None:
        """Take in an evaluation, in the place of an earlier one on the same split with the same repeat.

        What claims to be valid without a value, as no evaluator does, is invalid.
        """
        if evaluation.ok and not self.shifting and self.metric.name not in evaluation.metrics:
            evaluation = replace(evaluation, status="invalid", reason=f"there is no {self.metric.name} on record")
        self.log.append(commit)
        self._by_case.pop(commit, None)
        split, known = evaluation.split, self._evaluations.get(commit)
        if known is None:  # as nearly always
            self._evaluations[commit] = {(split, evaluation.repeat): evaluation}
            fold(self._evaluations)
            self._count(commit, None, evaluation)
            return
        before = Scores.evaluation(self, commit, split)
        known = self._evaluations[commit] = {**known, (split, evaluation.repeat): evaluation}
        self._together.pop((commit, split), None)
        self._estimates.pop((commit, split), None)
        self._count(commit, before, together(self._same(known, split)))
        if len(self._same(known, split)) > 1:
            self._learn(commit, evaluation)

    def _count(self, commit: str, before: Evaluation | None, now: Evaluation | None) -> None:
        """Count what all that is known of a candidate on a split comes to, if that one ranks."""
        if now is None or now.split != self.split:
            return
        self.seconds += seconds(now) - (seconds(before) if before else 0.0)
        value = now.metrics.get(self.metric.name) if now.ok else None
        if value is not None:
            self._values[commit] = value
        else:
            self._values.pop(commit, None)

    @staticmethod
    def _same(known: Mapping[tuple[str, int], Evaluation], split: str) -> list[Evaluation]:
        return [each for (where, _), each in sorted(known.items()) if where == split]

    def _learn(self, commit: str, evaluation: Evaluation) -> None:
        """Let a repeat, or what it repeats, tell of the noise."""
        if evaluation.split == self.split and evaluation.counts:
            self._again[commit] = self.repeated(commit)
        valid = self.valid(commit, evaluation.split)
        for name in {name for each in valid for name in each.metrics}:
            self._noise.setdefault((evaluation.split, name), Noise(self.declared.get(name, "")))
        if evaluation.split == self.split:
            self._tell_apart(commit, valid)
        moved = False
        for (split, name), noise in self._noise.items():
            if split == evaluation.split:
                before = noise.scale
                noise.learn(commit, {each.repeat: each.metrics[name] for each in valid if name in each.metrics})
                moved = moved or noise.scale != before
        if moved:
            self._rescale()
        elif evaluation.split == self.split:
            self._adjust(self.noise())

    def _tell_apart(self, commit: str, valid: Sequence[Evaluation]) -> None:
        """Note whether all evaluations of a candidate say the same, to the last digit."""
        values = [each.metrics[self.metric.name] for each in valid if self.metric.name in each.metrics]
        same = not values or math.isclose(min(values), max(values), rel_tol=ROUNDING)
        if same and len(valid) in (0, len(self.each(commit))):
            self.differing.discard(commit)
        else:
            self.differing.add(commit)

    def _rescale(self) -> None:
        """Compute means again, because the scale of some noise changed."""
        self._together.clear()
        self._estimates.clear()
        self._by_case.clear()
        self._adjust(self.noise())

    def _adjust(self, noise: Noise) -> None:
        """Rank what was evaluated again as by its first evaluation, where noise is common: then all are comparable."""
        for commit in noise.measured if not self.shifting else ():
            known = self._values.get(commit)
            if known is not None and (value := noise.adjusted(commit)) != known:
                self._values[commit] = value
                self._together.pop((commit, self.split), None)
                self.log.append(commit)

    def evaluation(self, commit: str, split: str | None = None, repeat: int | None = None) -> Evaluation | None:
        """What is known on `split` (default: the one that ranks), None while there is nothing.

        All repeats as one: means, and `flaky` where some failed and some did not; the metric that ranks is the score.
        With `repeat` that one alone.
        """
        split, known = split or self.split, self._evaluations.get(commit)
        if known is None:
            return None
        if repeat is not None:
            return known.get((split, repeat))
        if len(known) == 1:  # as nearly always
            return next((each for (where, _), each in known.items() if where == split), None)
        if (commit, split) not in self._together and (same := self._same(known, split)):
            told = together(same, lambda name: self.noise(split, name).scale)
            if split == self.split and commit in self._values:
                told = replace(told, metrics={**told.metrics, self.metric.name: self._values[commit]})
            self._together[commit, split] = told
        return self._together.get((commit, split))

    def each(self, commit: str, split: str | None = None) -> list[Evaluation]:
        """The evaluations of a candidate on `split` that count, each repeat by itself."""
        split = split or self.split
        return [each for each in self._same(self._evaluations.get(commit) or {}, split) if each.counts]

    def valid(self, commit: str, split: str | None = None) -> list[Evaluation]:
        """The evaluations of a candidate on `split` that are ok, each repeat by itself."""
        return [each for each in self.each(commit, split) if each.ok]

    def fitness(self, commit: str) -> float | None:
        """The score: the primary metric, of repeats the mean, without what the later ones add to all candidates.

        None unless the candidate was evaluated and is valid.
        """
        return self._values.get(commit)

    def cases(self, commit: str) -> Mapping[str, float]:
        """Case -> value of the primary metric, of all that have it; put together once, since planning asks often."""
        known = self._by_case.get(commit)
        if known is None:
            evaluation, name = self.evaluation(commit), self.metric.name
            told = evaluation.cases if evaluation else {}
            known = self._by_case[commit] = {case: values[name] for case, values in told.items() if name in values}
        return known

    # --- noise ------------------------------------------------------------------------------------------------------

    def repeated(self, commit: str, split: str | None = None) -> int:
        """How often a candidate was evaluated again, evaluations that do not count left out."""
        return sum(each.repeat > 0 for each in self.each(commit, split))

    def latest(self, commit: str) -> int:
        """The number of the last repeat of a candidate that counts; 0 where it was evaluated once."""
        return max((each.repeat for each in self.each(commit)), default=0)

    def estimate(self, commit: str, split: str | None = None, metric: str | None = None) -> Estimate | None:
        """The mean of a metric (default: the primary one) over all repeats; None unless the candidate is valid."""
        name, split = metric or self.metric.name, split or self.split
        primary = name == self.metric.name
        if primary and (known := self._estimates.get((commit, split))):
            return known
        told = self.evaluation(commit, split)
        if told is None or not told.ok or name not in told.metrics:
            return None
        scale = self.noise(split, name).scale
        estimate = Estimate.of((each.metrics[name] for each in self.valid(commit, split)), scale)
        if primary:
            self._estimates[commit, split] = estimate
        return estimate

    def beside(self, commit: str, split: str, name: str) -> Scores:
        """Empty scores, which know the noise as these do, but for what `commit` told, who will be told of as `name`."""
        known = {key: noise.without(commit) for key, noise in self._noise.items()}
        return Scores(self.metric, split, self.repeats, _noise=known, declared=self.declared)

    def noise(self, split: str | None = None, metric: str | None = None) -> Noise:
        """What is known of the spread of single measurements on `split`."""
        name = metric or self.metric.name
        return self._noise.get((split or self.split, name)) or Noise(self.declared.get(name, ""))

    def margin(self, commit: str, split: str | None = None, metric: str | None = None) -> float | None:
        """Half of the 95 % interval of a value, in the metric's unit; None unless the candidate is valid.

        0 where scores are exact, infinite while nothing was evaluated twice. On a log scale it is half of the width of
        an interval that reaches further up than down (`interval`).
        """
        if self._exact(split, metric):
            return 0.0 if commit in self._values else None
        known = self._known(commit, split, metric)
        return None if known is None else known[0].half(known[1], known[2])

    def interval(self, commit: str, split: str | None = None, metric: str | None = None) -> tuple[float, float] | None:
        """Return the 95 % interval of a mean, (v, v) where scores are exact; None unless the candidate is valid."""
        if self._exact(split, metric):
            value = self._values.get(commit)
            return None if value is None else (value, value)
        known = self._known(commit, split, metric)
        return None if known is None else known[0].interval(known[1], known[2])

    def _known(self, commit: str, split: str | None, metric: str | None) -> tuple[Scale, float, float] | None:
        """Return a value that is noisy, half of its interval, and the scale of that; None unless it is valid."""
        estimate, noise = self.estimate(commit, split, metric), self.noise(split, metric)
        if estimate is None:
            return None
        if not self.repeats:
            return LINEAR, estimate.mean, 0.0
        if noise.common and split in (None, self.split) and metric in (None, self.metric.name):
            return noise.scale, self._values[commit], noise.margin_of_first(estimate.times)
        return noise.scale, estimate.mean, noise.margin(estimate.times)

    def _exact(self, split: str | None, metric: str | None = None) -> bool:
        """Whether the value that ranks is asked for and is all there is to know."""
        return not self.repeats and split in (None, self.split) and metric in (None, self.metric.name)

    def difference(
        self, a: str, b: str, split: str | None = None, metric: str | None = None, level: float = LEVEL
    ) -> tuple[float, float]:
        """Return how much the value of `a` is above that of `b`, both valid, and the least difference beyond noise.

        Both are in the metric's unit; on a linear scale the second is half of the interval of the first. It is 0 where
        scores are exact, and infinite with one repeat: two values say too little of their spread.
        """
        over, above, margin = self._above(a, b, split, metric, level)
        margin = math.inf if self.repeats == 1 else margin
        return self.noise(split, metric).scale.difference(over, above, margin)

    def gain_ends(self, a: str, b: str, split: str | None = None, metric: Metric | None = None) -> tuple[float, float]:
        """Return the ends of the 95 % interval of how much better `a` is than `b`, both valid, in the metric's unit."""
        metric = metric or self.metric
        over, above, margin = self._above(a, b, split, metric.name, LEVEL)
        margin = math.inf if self.repeats == 1 else margin
        scale = self.noise(split, metric.name).scale
        if not math.isfinite(margin):
            return -math.inf, math.inf
        low, high = (metric.sign * scale.step(over, above + side) for side in (-margin, margin))
        return min(low, high), max(low, high)

    def _above(self, a: str, b: str, split: str | None, metric: str | None, level: float) -> tuple[float, float, float]:
        """Return the value of `b`, how much that of `a` is above it on the scale, and half of the interval of that.

        Where noise is common only evaluations with the same repeat are compared.
        """
        noise, name = self.noise(split, metric), metric or self.metric.name
        to = noise.scale.to
        if self.repeats and noise.common:
            mine, other = self._by_repeat(a, split, name), self._by_repeat(b, split, name)
            if shared := sorted(mine.keys() & other.keys()):
                above = mean([to(mine[each]) - to(other[each]) for each in shared])
                over = noise.adjusted(b) if b in noise.measured else other[shared[0]]
                return over, above, noise.paired(len(shared), level)
        one, two = self.estimate(a, split, metric), self.estimate(b, split, metric)
        assert one is not None  # the caller says so
        assert two is not None
        margin = noise.margin(one.times, two.times, level=level) if self.repeats else 0.0
        return two.mean, to(one.mean) - to(two.mean), margin

    def _by_repeat(self, commit: str, split: str | None, name: str) -> Mapping[int, float]:
        """The values of a metric by repeat; of those that were evaluated once without a look at the evaluation."""
        known = self.noise(split, name).measured.get(commit)
        if known is not None:
            return known
        if (
            split in (None, self.split)
            and name == self.metric.name
            and commit in self._values
            and not self._again.get(commit)
        ):
            return {0: self._values[commit]}
        return {each.repeat: each.metrics[name] for each in self.valid(commit, split) if name in each.metrics}

    def surely_better(self, a: str, b: str, split: str | None = None) -> bool:
        """Whether `a` is better beyond noise: zero lies outside the 95 % interval of the difference of the means.

        A valid candidate is surely better than one that is not. With one repeat nothing else is.
        """
        if self._exact(split):
            worth, over = self._values.get(a), self._values.get(b)
            return worth is not None and (over is None or self.metric.better(worth, over))
        mine, other = self.estimate(a, split), self.estimate(b, split)
        if mine is None or other is None:
            return mine is not None
        above, margin = self.difference(a, b, split)
        return self.metric.sign * above > margin

    def believed(self, commit: str) -> bool:
        """Whether enough is known of a candidate to call it the best.

        Always where scores are exact; else after all repeats, or once it was surely better than the best of then.
        """
        return not self.repeats or self._again.get(commit, 0) >= self.repeats or commit in self._distinct

    def again(self) -> list[str]:
        """Ids of all that were evaluated again."""
        return list(self._again)

    def known(self) -> list[str]:
        """Ids of all that were evaluated again and can be believed."""
        return [commit for commit in self._again if self.believed(commit)]

    def distinguish(self, commit: str, best: str | None) -> None:
        """Remember that a repeated candidate is surely better than the best one, if it is."""
        if best and commit != best and commit in self._again and self.surely_better(commit, best):
            self._distinct.add(commit)

    def field(self, commits: Iterable[str]) -> dict[str, Estimate]:
        """The estimates of those that are valid, on the scale; higher is better. Where noise is common as they rank."""
        sign, common, to = self.metric.sign, self.noise().common, self.scale.to
        known = {commit: self.estimate(commit) for commit in commits}
        means = {name: self._values[name] if common else each.mean for name, each in known.items() if each}
        return {
            name: Estimate(sign * to(means[name]), each.times, each.squares) for name, each in known.items() if each
        }


def seconds(evaluation: Evaluation) -> float:
    """The wall clock that an evaluation took; none where it was shared or does not count."""
    return evaluation.cost.wall if evaluation.counts and not evaluation.cached else 0.0


def together(evaluations: Sequence[Evaluation], scale: Callable[[str], Scale] = lambda _: LINEAR) -> Evaluation:
    """The evaluations of one candidate on one split as one: means of what is valid, and what it all cost.

    Those that do not count are left out where others do. `flaky`, with a reason, where some are valid and others not.
    Means are those of each metric's `scale`.
    """
    counted = [each for each in evaluations if each.counts] or list(evaluations[-1:])
    valid = [each for each in counted if each.ok]
    if len(counted) == 1:
        return counted[0]
    costs = [each.cost for each in counted]
    first = replace(
        (valid or counted)[0],
        metrics=_means([each.metrics for each in valid], scale),
        cases=_means_by_case([each.cases for each in valid], scale) if valid else counted[0].cases,
        cost=reduce(add, costs),
        cached=all(each.cached for each in counted),
        repeat=0,
    )
    failed = [each for each in counted if not each.ok]
    if not valid or not failed:
        return first
    reason = f"failed {len(failed)} of {len(counted)} times ({failed[0].status}: {failed[0].reason})"
    return replace(first, status="flaky", metrics={}, reason=reason)


def _means(found: Sequence[Mapping[str, float]], scale: Callable[[str], Scale]) -> dict[str, float]:
    names = [name for name in found[0] if all(name in each for each in found)] if found else []
    return {name: scale(name).mean([each[name] for each in found]) for name in names}


def _means_by_case(
    found: Sequence[Mapping[str, Mapping[str, float]]], scale: Callable[[str], Scale]
) -> dict[str, dict[str, float]]:
    shared = [name for name in found[0] if all(name in each for each in found)]
    return {name: _means([each[name] for each in found], scale) for name in shared}
