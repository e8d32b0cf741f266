"""What candidates are worth by their evaluations: the measured values of one task, under which all are comparable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import add

from msgspec.structs import replace

from evogit.core import Evaluation, Metric
from evogit.history.columns import DERIVED, fold
from evogit.history.pages import Pages
from evogit.stats.estimates import LEVEL, Estimate, Noise, mean

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
    an index looks only at what is new.
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

    @property
    def shifting(self) -> bool:
        """Whether what is learnt of some candidates moves the values of all."""
        return False

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
        self._count(commit, before, Scores.evaluation(self, commit, split))
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
        """The evaluations of one candidate on one split, in the order of the repeats."""
        return [each for (where, _), each in sorted(known.items()) if where == split]

    def _learn(self, commit: str, evaluation: Evaluation) -> None:
        """Let a repeat, or what it repeats, tell of the noise."""
        if evaluation.split == self.split and evaluation.counts:
            self._again[commit] = self.repeated(commit)
        valid = self.valid(commit, evaluation.split)
        for name in {name for each in valid for name in each.metrics}:
            self._noise.setdefault((evaluation.split, name), Noise())
        for (split, name), noise in self._noise.items():
            if split == evaluation.split:
                noise.learn(commit, {each.repeat: each.metrics[name] for each in valid if name in each.metrics})
        if evaluation.split == self.split:
            self._adjust(self.noise())

    def _adjust(self, noise: Noise) -> None:
        """Rank what was evaluated again as by its first evaluation, where noise is common: then all are comparable."""
        for commit in noise.measured if not self.shifting else ():
            known = self._values.get(commit)
            if known is not None and (value := noise.adjusted(commit)) != known:
                self._values[commit] = value
                self.log.append(commit)

    def evaluation(self, commit: str, split: str | None = None, repeat: int | None = None) -> Evaluation | None:
        """What is known on `split` (default: the one that ranks), None while there is nothing.

        All repeats as one: means, and `flaky` where some failed and some did not. With `repeat` that one alone.
        """
        split, known = split or self.split, self._evaluations.get(commit)
        if known is None:
            return None
        if repeat is not None:
            return known.get((split, repeat))
        if len(known) == 1:  # as nearly always
            return next((each for (where, _), each in known.items() if where == split), None)
        if (commit, split) not in self._together and (same := self._same(known, split)):
            self._together[commit, split] = together(same)
        return self._together.get((commit, split))

    def each(self, commit: str, split: str | None = None) -> list[Evaluation]:
        """The evaluations of a candidate on `split` that count, each repeat by itself."""
        split = split or self.split
        return [each for each in self._same(self._evaluations.get(commit) or {}, split) if each.counts]

    def valid(self, commit: str, split: str | None = None) -> list[Evaluation]:
        """The evaluations of a candidate on `split` that are ok, each repeat by itself."""
        return [each for each in self.each(commit, split) if each.ok]

    def fitness(self, commit: str) -> float | None:
        """The primary metric's value, the mean of all repeats; None unless the candidate was evaluated and is valid."""
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
        estimate = Estimate.of(each.metrics[name] for each in self.valid(commit, split))
        if primary:
            self._estimates[commit, split] = estimate
        return estimate

    def beside(self, commit: str, split: str) -> Scores:
        """Empty scores, which know the noise as these do, but for what `commit` told."""
        known = {key: noise.without(commit) for key, noise in self._noise.items()}
        return Scores(self.metric, split, self.repeats, _noise=known)

    def noise(self, split: str | None = None, metric: str | None = None) -> Noise:
        """What is known of the spread of single measurements on `split`."""
        return self._noise.get((split or self.split, metric or self.metric.name)) or Noise()

    def margin(self, commit: str, split: str | None = None, metric: str | None = None) -> float | None:
        """Half of the 95 % interval of a mean, in the metric's unit; None unless the candidate is valid.

        0 where scores are exact, infinite while nothing was evaluated twice.
        """
        if self._exact(split, metric):
            return 0.0 if commit in self._values else None
        estimate = self.estimate(commit, split, metric)
        if estimate is None:
            return None
        return self.noise(split, metric).margin(estimate.times) if self.repeats else 0.0

    def _exact(self, split: str | None, metric: str | None = None) -> bool:
        """Whether the value that ranks is asked for and is all there is to know."""
        return not self.repeats and split in (None, self.split) and metric in (None, self.metric.name)

    def difference(
        self, a: str, b: str, split: str | None = None, metric: str | None = None, level: float = LEVEL
    ) -> tuple[float, float]:
        """How much the value of `a` is above that of `b`, both valid, and half of the interval of that.

        Where noise is common only evaluations with the same repeat are compared; the interval is 0 where scores are
        exact.
        """
        noise, name = self.noise(split, metric), metric or self.metric.name
        if self.repeats and noise.common:
            mine, other = self._by_repeat(a, split, name), self._by_repeat(b, split, name)
            if shared := sorted(mine.keys() & other.keys()):
                return mean([mine[each] - other[each] for each in shared]), noise.paired(len(shared), level)
        one, two = self.estimate(a, split, metric), self.estimate(b, split, metric)
        assert one is not None  # the caller says so
        assert two is not None
        return one.mean - two.mean, noise.margin(one.times, two.times, level=level) if self.repeats else 0.0

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

        A valid candidate is surely better than one that is not.
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

    def known(self) -> list[str]:
        """Ids of all that were evaluated again and can be believed."""
        return [commit for commit in self._again if self.believed(commit)]

    def distinguish(self, commit: str, best: str | None) -> None:
        """Remember that a repeated candidate is surely better than the best one, if it is."""
        if best and commit != best and commit in self._again and self.surely_better(commit, best):
            self._distinct.add(commit)

    def field(self, commits: Iterable[str]) -> dict[str, Estimate]:
        """The estimates of those that are valid, higher is better; where noise is common as they rank."""
        sign, common = self.metric.sign, self.noise().common
        known = {commit: self.estimate(commit) for commit in commits}
        means = {name: self._values[name] if common else each.mean for name, each in known.items() if each}
        return {name: Estimate(sign * means[name], each.times, each.squares) for name, each in known.items() if each}


class PartialScores(Scores):
    """The scores of a run, shared with it, with those of `members` alone; it has a log of its own."""

    __slots__ = ("members", "whole")

    def __init__(self, whole: Scores) -> None:
        """Begin with no members."""
        super().__init__(
            whole.metric,
            whole.split,
            whole.repeats,
            _evaluations=whole._evaluations,
            _values=whole._values,
            _together=whole._together,
            _by_case=whole._by_case,
            _estimates=whole._estimates,
            _noise=whole._noise,
            _again=whole._again,
            _distinct=whole._distinct,
        )
        self.whole = whole
        self.members = set[str]()

    @property
    def shifting(self) -> bool:
        """Whether a verdict on two moves all."""
        return self.whole.shifting

    def __contains__(self, commit: object) -> bool:
        return commit in self.members and commit in self.whole

    def commits(self) -> list[str]:
        """Ids of all members that have an evaluation."""
        return [commit for commit in self.whole.commits() if commit in self.members]

    def evaluation(self, commit: str, split: str | None = None, repeat: int | None = None) -> Evaluation | None:
        """What is known of a member; None of others."""
        return self.whole.evaluation(commit, split, repeat) if commit in self.members else None

    def fitness(self, commit: str) -> float | None:
        """What a member is worth; None for others."""
        return self.whole.fitness(commit) if commit in self.members else None

    def cases(self, commit: str) -> Mapping[str, float]:
        """Case -> value for a member; nothing for others."""
        return self.whole.cases(commit) if commit in self.members else {}

    def estimate(self, commit: str, split: str | None = None, metric: str | None = None) -> Estimate | None:
        """The mean for a member; None for others."""
        return self.whole.estimate(commit, split, metric) if commit in self.members else None

    def margin(self, commit: str, split: str | None = None, metric: str | None = None) -> float | None:
        """Half of the 95 % interval for a member; None for others."""
        return self.whole.margin(commit, split, metric) if commit in self.members else None

    def surely_better(self, a: str, b: str, split: str | None = None) -> bool:
        """Whether `a` is better beyond noise, strangers left out."""
        return a in self.members and (b not in self.members or self.whole.surely_better(a, b, split))


def seconds(evaluation: Evaluation) -> float:
    """The wall clock that an evaluation took; none where it was shared or does not count."""
    return evaluation.cost.wall if evaluation.counts and not evaluation.cached else 0.0


def together(evaluations: Sequence[Evaluation]) -> Evaluation:
    """The evaluations of one candidate on one split as one: means of what is valid, and what it all cost.

    Those that do not count are left out where others do. `flaky`, with a reason, where some are valid and others not.
    """
    counted = [each for each in evaluations if each.counts] or list(evaluations[-1:])
    valid = [each for each in counted if each.ok]
    if len(counted) == 1:
        return counted[0]
    costs = [each.cost for each in counted]
    first = replace(
        (valid or counted)[0],
        metrics=_means([each.metrics for each in valid]),
        cases=_means_by_case([each.cases for each in valid]) if valid else counted[0].cases,
        cost=reduce(add, costs),
        cached=all(each.cached for each in counted),
        repeat=0,
    )
    failed = [each for each in counted if not each.ok]
    if not valid or not failed:
        return first
    reason = f"failed {len(failed)} of {len(counted)} times ({failed[0].status}: {failed[0].reason})"
    return replace(first, status="flaky", metrics={}, reason=reason)


def _means(found: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean of each value that all have."""
    names = [name for name in found[0] if all(name in each for each in found)] if found else []
    return {name: mean([each[name] for each in found]) for name in names}


def _means_by_case(found: Sequence[Mapping[str, Mapping[str, float]]]) -> dict[str, dict[str, float]]:
    shared = [name for name in found[0] if all(name in each for each in found)]
    return {name: _means([each[name] for each in found]) for name in shared}
