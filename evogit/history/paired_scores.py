"""Scores of a metric that depends on the machine: measurements side by side rank."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from evogit.core import Beside, Evaluation
from evogit.history.scores import Scores, seconds
from evogit.stats.estimates import LEVEL, Estimate, Noise, shared_level, student
from evogit.stats.scales import LOG, mean
from evogit.stats.side_by_side import Pairs

STEADY = 3.0  # standard deviations of a pair's difference up to which the machine's pace is taken for steady
LOOKS = 4  # looks at an interval before it is believed, about, among which the error is shared
NEGLIGIBLE = 0.1  # standard deviations by which the value of a candidate may be off before it is ranked again


@dataclass(slots=True)
class PairedScores(Scores):
    """The evaluations of one run whose metric is a time, a rate or a use of memory: values of one hour compare.

    Values are ratios to the seed's, as on the machine of the run's beginning. That of a candidate which was measured
    beside a reference follows from its pairs alone. That of any other is its one measurement, divided by the pace of
    the machine: what references measured before and after it, over what they are worth. Where the two differ beyond
    noise the machine changed in between, and the pace that favours the candidate counts: it is measured again before
    anybody believes it.
    """

    pairs: Pairs = field(default_factory=Pairs)
    _seed: str = ""
    _looks: list[list[tuple[str, float]]] = field(default_factory=list)
    """Measurements of references: (id, logarithm), those with no candidate in between as one; the first are the seed's
    before anything else was evaluated."""
    _raw: dict[str, tuple[float, int]] = field(default_factory=dict)
    """Of those that were not measured side by side the logarithm of the measurement, and how many looks were before."""
    chosen: bool = True
    """True if the compared candidates were chosen among all that were measured, which makes luck count for more."""
    unseen: int = 0
    """Candidates that were evaluated since the last look."""

    @property
    def paired(self) -> bool:
        """Return whether candidates are measured side by side before they are believed: not where scores are exact."""
        return self.repeats > 0

    @property
    def unobserved(self) -> int:
        """Return how many candidates were evaluated since the pace of the machine was."""
        return self.unseen if self.repeats else 0

    def _count(self, commit: str, before: Evaluation | None, now: Evaluation | None) -> None:
        """Take in what is new of a candidate on the split that ranks, and what it tells of the machine."""
        if now is None or now.split != self.split:
            return
        self.seconds += seconds(now) - (seconds(before) if before else 0.0)
        if not now.ok:
            self._values.pop(commit, None)
            self._raw.pop(commit, None)
            return
        known = self._evaluations[commit]
        latest = known[max(each for each in known if each[0] == self.split)]
        value = self._log(latest.metrics)
        if value is None:
            self._values[commit] = now.metrics[self.metric.name]
            return
        self._seed = self._seed or commit
        if beside := latest.beside:
            other = self._log(beside.metrics)
            if other is not None:
                self.pairs.add(commit, latest.repeat, beside.candidate, value - other)
                self._raw.pop(commit, None)
                if self.side_by_side(beside.candidate, self._seed):
                    self._raw.pop(beside.candidate, None)
                self._look(beside.candidate, other)
        elif commit == self._seed or commit in self.pairs.fit.numbers:
            self._look(commit, value)
        else:
            self._raw.setdefault(commit, (value, len(self._looks)))
            self.unseen += 1
            self._place([commit])

    def _look(self, reference: str, value: float) -> None:
        """Take in what a reference measured, and let the pace that it tells place all."""
        if self.unseen or not self._looks:
            self._looks.append([])
        self.unseen = 0
        self._looks[-1].append((reference, value))
        self._place([*self.pairs.fit.numbers, *self._raw, self._seed])

    def _log(self, metrics: Mapping[str, float]) -> float | None:
        """The logarithm of a value; None where it has none, and so tells no ratio."""
        value = metrics.get(self.metric.name)
        return math.log(value) if value is not None and value > 0 else None

    def _place(self, commits: Iterable[str]) -> None:
        """Rank these as at the pace of the beginning; what moves by much less than the noise stays."""
        measured, least = self._measured(), NEGLIGIBLE * math.sqrt(self._variance)
        for commit in commits:
            if commit in self._raw:
                value, looks = self._raw[commit]
                logarithm = value - self._between(measured[looks - 1 : looks + 1])
            else:
                logarithm = self._worth(commit)
            known = self._values.get(commit)
            if known is None and commit in self.pairs.fit.numbers and self._failed(commit):
                continue
            if known is None or known <= 0 or not abs(math.log(known) - logarithm) <= least or commit not in self._raw:
                self._values[commit] = LOG.back(logarithm)
                self.log.append(commit)

    def _failed(self, commit: str) -> bool:
        told = Scores.evaluation(self, commit)
        return told is None or not told.ok

    def _worth(self, commit: str) -> float:
        """The logarithm of what a reference measures at the pace of the beginning."""
        worths = self.pairs.fit.worths
        return self._origin + worths.get(commit, 0.0) - worths.get(self._seed, 0.0)

    @property
    def _origin(self) -> float:
        return mean([value for _, value in self._looks[0]])

    @property
    def paces(self) -> list[float]:
        """How much more the references measured than at the beginning, as logarithms; one for each time they did."""
        return list(map(mean, self._measured()))

    def _measured(self) -> list[list[float]]:
        return [[value - self._worth(reference) for reference, value in look] for look in self._looks]

    def _between(self, looks: Sequence[Sequence[float]]) -> float:
        """The pace for what was measured between two looks, or after the last one."""
        steady = STEADY * math.sqrt(self._variance)
        nearest = [
            mean(look) if max(look) - min(look) <= steady else look[edge]
            for look, edge in zip(looks, (-1, 0), strict=False)
        ]
        if max(nearest) - min(nearest) <= steady:
            return mean(nearest)
        return max(nearest) if self.metric.sign < 0 else min(nearest)

    @property
    def _variance(self) -> float:
        """Of the difference of two measurements at the same pace; of the seed's first ones while there are no pairs."""
        if self.pairs.fit.freedom:
            return self.pairs.fit.variance
        first = Estimate.of(value for _, value in self._looks[0]) if self._looks else None
        return 2 * first.squares / (first.times - 1) if first and first.times > 1 else math.inf

    @property
    def _freedom(self) -> int:
        return self.pairs.fit.freedom or (len(self._looks[0]) - 1 if self._looks else 0)

    def evaluation(self, commit: str, split: str | None = None, repeat: int | None = None) -> Evaluation | None:
        """Return the evaluation on `split` with the value that ranks; with `repeat` the measured one."""
        told = Scores.evaluation(self, commit, split, repeat)
        value = self._values.get(commit)
        if told is None or not told.ok or value is None or repeat is not None or not self._ranks(split):
            return told
        return replace(told, metrics={**told.metrics, self.metric.name: value})

    def beside(self, commit: str, split: str, name: str) -> Scores:
        """Scores that know the seed and all pairs, with `commit` as `name`; of another split as others."""
        if split != self.split or commit == self._seed:
            return Scores.beside(self, commit, split, name)
        value = self._values[self._seed]
        return PairedScores(
            self.metric,
            split,
            self.repeats,
            declared=self.declared,
            pairs=self.pairs.renamed(commit, name),
            _values={self._seed: value},
            _seed=self._seed,
            _looks=[[(self._seed, LOG.to(value))]],
            chosen=False,
            unseen=1,  # what references measure from here on is at another pace
        )

    # --- noise ------------------------------------------------------------------------------------------------------

    def _ranks(self, split: str | None, metric: str | None = None) -> bool:
        return bool(self.repeats) and split in (None, self.split) and metric in (None, self.metric.name)

    def measured_beside(self, a: str, b: str) -> bool:
        """Return whether two candidates were measured beside each other."""
        return a == b or self.pairs.fit.met(a, b)

    def side_by_side(self, a: str, b: str) -> bool:
        """Return whether two candidates were measured side by side, or both with others that were."""
        return self.pairs.fit.joined(a, b)

    def noise(self, split: str | None = None, metric: str | None = None) -> Noise:
        """Return the spread of single measurements; of the metric that ranks only that it is relative."""
        return Noise("log") if self._ranks(split, metric) else Scores.noise(self, split, metric)

    def estimate(self, commit: str, split: str | None = None, metric: str | None = None) -> Estimate | None:
        """The value that ranks, by as many pairs as there are; of other splits and metrics the mean."""
        if not self._ranks(split, metric):
            return Scores.estimate(self, commit, split, metric)
        value = self._values.get(commit)
        return None if value is None else Estimate(value, max(self._again.get(commit, 0), 1))

    def margin(self, commit: str, split: str | None = None, metric: str | None = None) -> float | None:
        """Half of the 95 % interval of a value, in the metric's unit; None unless the candidate is valid."""
        found = self.interval(commit, split, metric)
        return None if found is None else (found[1] - found[0]) / 2

    def interval(self, commit: str, split: str | None = None, metric: str | None = None) -> tuple[float, float] | None:
        """Return the 95 % interval of a value; None unless the candidate is valid.

        It holds how much the machine's pace changed: the same code may measure so much else tomorrow.
        """
        if not self._ranks(split, metric):
            return Scores.interval(self, commit, split, metric)
        value = self._values.get(commit)
        if value is None:
            return None
        half = self.ratio(commit, self._seed)[1] if self._seed in self._values else math.inf
        return LOG.interval(value, math.hypot(half, self.drift / 2))

    @property
    def drift(self) -> float:
        """Return how far apart the largest and the smallest measurement of the same code were, as a logarithm."""
        paces = self.paces
        return max(paces) - min(paces) if paces else 0.0

    def ratio(self, a: str, b: str, level: float = LEVEL) -> tuple[float, float]:
        """The logarithm of the value of `a` over that of `b`, both valid, and half of its interval."""
        if a == b or self.side_by_side(a, b):
            return self.pairs.fit.difference(a, b, level)
        single = student(level, self._freedom) * math.sqrt(2 * self._variance) if self._freedom else math.inf
        return LOG.to(self._values[a]) - LOG.to(self._values[b]), single

    def _above(self, a: str, b: str, split: str | None, metric: str | None, level: float) -> tuple[float, float, float]:
        if not self._ranks(split, metric):
            return Scores._above(self, a, b, split, metric, level)
        return self._values[b], *self.ratio(a, b, max(level, self._level(a, b)))

    def _level(self, a: str, b: str) -> float:
        """The confidence at which one of many that were measured side by side is called better."""
        chosen = self.chosen and self.side_by_side(a, b)
        return shared_level(LOOKS * max(len(self.pairs.fit.numbers), 1)) if chosen else LEVEL

    def surely_better(self, a: str, b: str, split: str | None = None) -> bool:
        """Return whether `a` is better beyond noise; the error is shared among all that were measured side by side."""
        if not self._ranks(split):
            return Scores.surely_better(self, a, b, split)
        if a not in self._values or b not in self._values:
            return a in self._values
        above, margin = self.ratio(a, b, self._level(a, b))
        return self.repeats != 1 and self.metric.sign * above > margin

    def known(self) -> list[str]:
        """Ids of all that were measured side by side and can be believed."""
        return [commit for commit in self.pairs.fit.numbers if self.believed(commit)]

    def _learn(self, commit: str, evaluation: Evaluation) -> None:
        if evaluation.split != self.split:
            Scores._learn(self, commit, evaluation)
        elif evaluation.counts:
            self._again[commit] = self.repeated(commit)

    def field(self, commits: Iterable[str]) -> dict[str, Estimate]:
        """The estimates of those that are valid, as logarithms; higher is better."""
        known = {commit: self.estimate(commit) for commit in commits}
        sign = self.metric.sign
        return {name: Estimate(sign * LOG.to(each.mean), each.times) for name, each in known.items() if each}


def beside(evaluation: Evaluation, candidate: str, reference: Evaluation | None) -> Evaluation:
    """An evaluation as the one of a pair: `reference` is the candidate's that was taken in the same minutes, if any."""
    if reference is None:
        return evaluation
    metrics = reference.metrics if reference.ok else {}
    return replace(evaluation, beside=Beside(candidate=candidate, metrics=metrics, cost=reference.cost))
