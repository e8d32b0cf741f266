"""The standing of candidates: score, interval, gain, verdict and digits. Every face renders it and derives none of it.

The rules, for users in docs/believing.md ("The words"):

- A candidate has one *score*, the value that it ranks by.
- Its *origin* is the fittest valid one of its parents and inspirations; the first of equals. Nothing else is compared
  with it unless a face names what.
- A *gain* is positive when it is an improvement, whichever way the metric goes.
- The *verdict* is `better` or `worse` where the gain exceeds its 95 % interval, else `within noise`; `tied` where the
  two are equal up to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from evogit.core import Candidate, Evaluation, Metric
from evogit.history.history import History
from evogit.history.scores import Scores
from evogit.history.state import ROUNDING
from evogit.text import change, number

Verdict = Literal["better", "worse", "within noise", "tied"]

WAITING, OLD, REFUSED = "waiting", "old", "refused"
"""The status of what is not evaluated yet, of what was evaluated only before the task changed, and of a valid
candidate that the reviewer refused."""

UNMEASURED = (WAITING, OLD, "evaluator-error", "not-measured")
"""Statuses that say nothing of the candidate."""

MAX_PLACES = 12  # decimals that are shown at most; differences of less than that are rounding
MORE_PLACES = 3  # decimals beyond the usual ones that tell the best from the one before it


class Comparison(Struct, frozen=True):
    """A comparison of two values of a metric.

    `gain` is positive when `value` is better than `over`, and 0 where they differ by rounding alone. `margin` is half
    of its 95 % interval, in the metric's unit: 0 where values are exact, infinite while the noise is not known.
    `apart` says that the two were measured in different hours, and that the machine's pace counts: nothing but a
    measurement side by side proves a gain then. `ends` are those of the interval where it reaches further up than down,
    as that of a ratio does: `margin` is how far it reaches towards no gain then.
    """

    value: float
    over: float
    gain: float
    margin: float = 0.0
    apart: bool = False
    ends: tuple[float, float] | None = None

    @classmethod
    def of(cls, metric: Metric, value: float, over: float, margin: float = 0.0) -> Comparison:
        """Compare two values of a metric, which differ by as much as was measured."""
        gain = 0.0 if math.isclose(value, over, rel_tol=ROUNDING) else metric.gain(value, over)
        return cls(value, over, gain, margin)

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the gain."""
        return self.ends or (self.gain - self.margin, self.gain + self.margin)

    @property
    def verdict(self) -> Verdict:
        """The difference in one word."""
        if not self.gain:
            return "tied"
        if abs(self.gain) <= self.margin:
            return "within noise"
        return "better" if self.gain > 0 else "worse"

    @property
    def relative(self) -> str:
        """The value as a share of the other one, as `45 % less` or `1.8x`; empty where that says nothing."""
        share = relative(self.value, self.over) if self.gain else ""
        return f"{share}, not measured side by side" if share and self.apart else share

    def text(self, places: int) -> str:
        """Return the gain as tables have it: `+0.2000`, `+0.0130 within noise`, `tied`."""
        if self.verdict == "tied":
            return "tied"
        about = "~" * self.apart
        return about + change(self.gain, places) + (" within noise" if self.verdict == "within noise" else "")

    def between(self, places: int, give: str = "±") -> str:
        """Return the gain with half of its interval: `+0.2000 ± 0.0100`, `+0.0130 ± 0.0200 within noise`, `tied`."""
        text = self.text(places)
        if self.verdict == "tied" or not self.margin:
            return text
        gain, *rest = text.split(" ", 1)
        half = number(self.margin, places) if math.isfinite(self.margin) else "?"
        return " ".join([gain, give, half, *rest])

    def words(self, places: int) -> str:
        """Return verdict and gain as sentences have them: `better, +0.2000`, `within noise, +0.0130`, `tied`."""
        if self.verdict == "tied":
            return self.verdict
        return f"{self.verdict}, {change(self.gain, places)}{', not measured side by side' * self.apart}"


class Standing(Struct, frozen=True):
    """The standing of one candidate.

    `status` is that of its evaluation, or one of `WAITING`, `OLD` and `REFUSED`. `score` is None unless it is `ok` or
    refused; `interval` is its 95 % interval, which reaches further up than down on a log scale and has equal ends where
    the score is exact, and `margin` half of that. `origin` is the candidate that it is compared with, None where no
    valid one is known.
    """

    commit: str
    status: str
    score: float | None = None
    interval: tuple[float, float] | None = None
    margin: float = 0.0
    origin: str | None = None
    comparison: Comparison | None = None

    @property
    def gain(self) -> float | None:
        """Return how much better it is than its origin; None if unknown."""
        return self.comparison.gain if self.comparison else None

    @property
    def verdict(self) -> Verdict | None:
        """Return how it compares with its origin; None if unknown."""
        return self.comparison.verdict if self.comparison else None

    @property
    def mark(self) -> str:
        """A tilde before what was not measured side by side with its origin where that counts."""
        return "~" if self.comparison and self.comparison.apart else ""

    @property
    def failed(self) -> bool:
        """Return whether it was measured and is not valid."""
        return self.score is None and self.status not in UNMEASURED


def standing(history: History, commit: str) -> Standing:
    """Return how a candidate stands, on the split that ranks."""
    scores, status = history.scores, status_of(history, commit)
    score = scores.fitness(commit)
    if score is None:
        return Standing(commit, status)
    origin = origin_of(history, commit)
    compared = compare(scores, commit, origin) if origin else None
    return Standing(commit, status, score, scores.interval(commit), scores.margin(commit) or 0.0, origin, compared)


def status_of(history: History, commit: str) -> str:
    """Return the status of a candidate's evaluation on the split that ranks."""
    if history.fitness(commit) is not None:
        return REFUSED if commit in history.refused else "ok"
    evaluation = history.evaluation(commit)
    if evaluation is None:
        return OLD if history.former(commit) else WAITING
    return evaluation.status


def origin_of(history: History, commit: str) -> str | None:
    """Return the fittest valid one of a candidate's parents and inspirations, the first of equals."""
    scores = history.scores
    fittest, best = None, None
    for origin in history.origins(commit):
        value = scores.fitness(origin)
        if value is not None and (best is None or scores.metric.better(value, best)):
            fittest, best = origin, value
    return fittest


def compare(
    scores: Scores, commit: str, over: str, split: str | None = None, metric: Metric | None = None
) -> Comparison | None:
    """Compare two candidates by a metric (default: the one that ranks); None unless both have a value on `split`."""
    metric = metric or scores.metric
    value, other = value_of(scores, commit, split, metric), value_of(scores, over, split, metric)
    if value is None or other is None:
        return None
    if not scores.repeats and not scores.shifting:
        return Comparison.of(metric, value, other)
    above, margin = scores.difference(commit, over, split, metric.name)
    apart = scores.paired and not scores.measured_beside(commit, over)
    ends = None if scores.shifting else scores.gain_ends(commit, over, split, metric)
    return Comparison(value, other, metric.sign * above, margin, apart, ends)


def value_of(scores: Scores, commit: str, split: str | None = None, metric: Metric | None = None) -> float | None:
    """Return a candidate's value of a metric on a split, by default its score; None unless it is valid there."""
    if split in (None, scores.split) and metric in (None, scores.metric):
        return scores.fitness(commit)
    evaluation = scores.evaluation(commit, split)
    return evaluation.metrics.get((metric or scores.metric).name) if evaluation and evaluation.ok else None


def relative(value: float, over: float) -> str:
    """Return a value as a share of another one: `45 % less`, `5.1 % more`, `1.8x`; empty where that says nothing."""
    if min(value, over) <= 0 or not math.isfinite(value / over):
        return ""
    ratio, percent = value / over, abs(100 * (value / over - 1))
    if ratio >= 1.5:
        return f"{ratio:,.1f}x" if ratio < 10 else f"{ratio:,.0f}x"
    text = f"{percent:.1f}" if percent < 9.95 or percent > 99 else f"{percent:.0f}"
    return f"{text} % {'more' if ratio > 1 else 'less'}" if any(digit in "123456789" for digit in text) else ""


# --- the best known value ---------------------------------------------------------------------------------------------


class Gap(Struct, frozen=True):
    """The distance of a candidate from the best known value: `left` is what is missing, negative when it is beyond.

    `share` is the part of the way from the seed that it has covered; None where the seed was there already.
    """

    known: float
    left: float
    share: float | None


def gap(history: History, commit: str | None) -> Gap | None:
    """Return how far a candidate is from the best known value, which is published for the split `train` alone."""
    metric, value = history.metric, history.fitness(commit) if commit else None
    if value is None or metric.best_known is None or history.split != "train":
        return None
    seed = history.fitness(history.seed) if history.seed else None
    share = None if seed is None else metric.gap_closed(value, seed)
    return Gap(metric.best_known, metric.gain(metric.best_known, value), share)


# --- digits -----------------------------------------------------------------------------------------------------------


def decimals(
    *values: float | None,
    margins: Iterable[float | None] = (),
    known: float | None = None,
    before: float | None = None,
) -> int:
    """Return how many decimals show about five significant digits of the largest value, two of the least margin.

    More are shown where the last value is nearer to `known`, the best known one, than these can tell; and up to
    `MORE_PLACES` more where it is nearer to that of the best `before`.
    """
    size = max((abs(value) for value in values if value and math.isfinite(value)), default=1.0)
    digits = 4 - math.floor(math.log10(size))
    if values and (last := values[-1]) is not None and math.isfinite(last):
        more = 0 if before is None else _apart(last, before) + 1
        digits = max(digits, min(more, digits + MORE_PLACES), 0 if known is None else _apart(last, known))
    least = min((each for each in margins if each and math.isfinite(each)), default=0.0)
    if least:
        digits = min(digits, 1 - math.floor(math.log10(least)))
    return min(max(digits, 0), MAX_PLACES)


def _apart(value: float, other: float) -> int:
    """Return the decimals in which two values differ first; of equals those that the other one is written with."""
    away = abs(value - other)
    if away > ROUNDING * abs(other):
        return -math.floor(math.log10(away))
    return len(f"{other:.{MAX_PLACES}f}".rstrip("0").partition(".")[2])


def places(history: History) -> int:
    """Return the decimals of the primary metric, with which the values of a run line up."""
    ends = [commit for commit in (history.seed, history.best) if commit]
    values, margins = [history.fitness(each) for each in ends], [history.scores.margin(each) for each in ends]
    found = gap(history, history.best)
    baseline = None if any(values) else history.metric.baseline
    before = history.fitness(history.records[-2]) if history.records[1:] else None
    return decimals(baseline, *values, margins=margins, known=found.known if found else None, before=before)


def last_evaluation(history: History, candidate: Candidate) -> Evaluation | None:
    """The last evaluation of a candidate, whatever the task was like then."""
    return history.evaluation(candidate.commit) or history.former(candidate.commit)


def was_valid(history: History, commit: str) -> bool:
    """Return whether a candidate was valid when it was evaluated last, or was not evaluated."""
    last = last_evaluation(history, history.phylogeny[commit])
    return last is None or not last.counts or last.ok


def way(history: History, commit: str) -> list[tuple[Candidate, Comparison | None]]:
    """Return how a candidate came to be, from the seed on, so that the gains add up where scores are exact.

    The way leads back along the fittest of parents and inspirations; what was never valid is left out. A gain is over
    that one; where none was evaluated since the task changed, over the last one on the way.
    """
    steps: list[tuple[Candidate, Comparison | None]] = []
    last = None
    for each in _ancestors(history, commit):
        over = origin_of(history, each.commit) or last
        steps.append((each, compare(history.scores, each.commit, over) if over else None))
        last = last if history.fitness(each.commit) is None else each.commit
    return steps


def _ancestors(history: History, commit: str) -> list[Candidate]:
    found = [history.phylogeny[commit]]
    while origins := history.origins(found[-1].commit):
        found.append(history.phylogeny[origin_of(history, found[-1].commit) or origins[0]])
    return [each for each in found[::-1] if each is found[0] or was_valid(history, each.commit)]
