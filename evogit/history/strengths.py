"""What candidates are worth by verdicts on pairs of them, in the place of measured values."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from msgspec import Struct
from msgspec.structs import replace

from evogit.core import Evaluation
from evogit.events import Compared
from evogit.history.pages import DERIVED
from evogit.history.scores import Scores
from evogit.stats.bradley_terry import Comparisons, Fit, Pair, fit, opponent, pairs
from evogit.stats.estimates import LEVEL, Estimate, deviate

ANCHOR, GROWTH = 64, 1.25
"""A fit to start from is kept after so many verdicts, and again whenever there are so many times more of them: so
strengths depend on the verdicts alone, not on when they were asked for, and a long journal is read quickly."""

LONGEST_REASON = 500  # characters of a judge's reason that are journalled
DIGITS = 4  # digits of strengths behind the point; steps of a fit move what comes after them


@dataclass(slots=True)
class Strengths(Scores):
    """The verdicts of one run under its present task; those that are valid are worth their Bradley-Terry strength."""

    tally: Comparisons = field(default_factory=Comparisons)
    verdicts: list[Compared] = field(default_factory=list)
    _anchor: Fit | None = None
    _next: int = ANCHOR
    _fit: Fit | None = field(default=None, metadata=DERIVED)

    @property
    def shifting(self) -> bool:
        """A verdict on two moves all."""
        return True

    def compare(self, verdict: Compared) -> None:
        """Take in one verdict."""
        judge, self._fit = judge_of(verdict), None
        self.verdicts.append(verdict)
        if verdict.calibration:
            self.tally.add_known(judge, right=verdict.winner == "a")
        else:
            self.tally.add(judge, verdict.a, verdict.b, {"a": 1.0, "b": 0.0, "tie": 0.5}[verdict.winner])
        self.log += filter(None, (verdict.a, verdict.b))
        if len(self.verdicts) == self._next:
            self._anchor = fit(self.tally, self._anchor)
            self._next = int(self._next * GROWTH)

    @property
    def fit(self) -> Fit:
        """What the verdicts say."""
        if self._fit is None:
            self._fit = fit(self.tally, self._anchor)
        return self._fit

    def evaluation(self, commit: str, split: str | None = None, repeat: int | None = None) -> Evaluation | None:
        """Whether a candidate is valid, with its strength of now as the metric."""
        told = Scores.evaluation(self, commit, split, repeat)
        strength = self.fitness(commit)
        return replace(told, metrics={self.metric.name: strength}) if told and strength is not None else told

    def fitness(self, commit: str) -> float | None:
        """The strength in log-odds; None unless the candidate is valid."""
        told = Scores.evaluation(self, commit)
        return round(self.fit.strength(commit), DIGITS) + 0.0 if told and told.ok else None

    def estimate(self, commit: str, split: str | None = None, metric: str | None = None) -> Estimate | None:
        """The strength, by as many verdicts as there are."""
        strength = self.fitness(commit)
        return None if strength is None else Estimate(strength, max(self.met(commit), 1))

    def margin(self, commit: str, split: str | None = None, metric: str | None = None) -> float | None:
        """Half of the 95 % interval of a strength; None unless the candidate is valid."""
        return None if self.fitness(commit) is None else deviate(LEVEL) * self.fit.error(commit)

    def interval(self, commit: str, split: str | None = None, metric: str | None = None) -> tuple[float, float] | None:
        """The 95 % interval of a strength; None unless the candidate is valid."""
        margin, strength = self.margin(commit), self.fitness(commit)
        return None if margin is None or strength is None else (strength - margin, strength + margin)

    def _exact(self, split: str | None, metric: str | None = None) -> bool:
        return False

    def difference(
        self, a: str, b: str, split: str | None = None, metric: str | None = None, level: float = LEVEL
    ) -> tuple[float, float]:
        """Return how much stronger `a` is, as if the two errors had nothing in common: that asks for more."""
        mine, other = self.fitness(a), self.fitness(b)
        assert mine is not None  # the caller says so
        assert other is not None
        return mine - other, deviate(level) * math.hypot(self.fit.error(a), self.fit.error(b))

    def met(self, commit: str) -> int:
        """In how many verdicts a candidate was compared."""
        return sum(self.tally.met.get(commit, {}).values())

    def opponent(self, commit: str, others: Sequence[str], rng: random.Random) -> str | None:
        """With which of the others a comparison of the candidate tells most; None where there are none."""
        return opponent(self.fit, self.tally, commit, others, rng)

    def pairs(self, among: Sequence[str], rng: random.Random, avoid: Collection[frozenset[str]]) -> Iterator[Pair]:
        """Pairs whose comparison tells most, first those of the least known; none that is to be avoided."""
        return pairs(self.fit, self.tally, among, rng, avoid)


class JudgeRecord(Struct, frozen=True, kw_only=True):
    """What is known of one judge: `calibrated` questions with a known answer, `right` of which it knew.

    `agreed` of its `decided` verdicts, ties left out, name the one that all verdicts together hold for the stronger;
    `first` of them named the side that it was shown first.
    """

    judge: str
    by: str
    verdicts: int
    decided: int
    agreed: int
    first: int
    calibrated: int
    right: int
    reliability: float


def judges(strengths: Strengths) -> list[JudgeRecord]:
    """Every judge, in the order in which they came."""
    found: dict[str, list[Compared]] = {}
    for verdict in strengths.verdicts:
        found.setdefault(judge_of(verdict), []).append(verdict)
    return [_record(strengths.fit, key, verdicts) for key, verdicts in found.items()]


def _record(known: Fit, key: str, verdicts: list[Compared]) -> JudgeRecord:
    known_ones = [each for each in verdicts if each.calibration]
    ranked = [each for each in verdicts if not each.calibration]
    decided = [each for each in ranked if each.winner != "tie"]
    return JudgeRecord(
        judge=verdicts[0].judge,
        by=verdicts[0].by,
        verdicts=len(ranked),
        decided=len(decided),
        agreed=sum((known.strength(each.a) > known.strength(each.b)) == (each.winner == "a") for each in decided),
        first=sum((each.winner == "a") != each.swapped for each in decided),
        calibrated=len(known_ones),
        right=sum(each.winner == "a" for each in known_ones),
        reliability=known.reliability(key),
    )


def said_of(strengths: Strengths, commit: str, most: int) -> dict[str, str]:
    """The latest verdicts on a candidate, for the next brief: what it was compared with -> how it did, and why."""
    met = [each for each in strengths.verdicts if commit in (each.a, each.b) and not each.calibration]
    told = {}
    for number, each in enumerate(met[-most:], 1):
        mine, other = ("a", each.b) if commit == each.a else ("b", each.a)
        how = "as good" if each.winner == "tie" else "better" if each.winner == mine else "worse"
        told[f"verdict {number}, against {other[:7]}"] = f"{how}. {each.reason}".rstrip()
    return told


def kept_reason(said: str) -> str:
    """Why a judge says so, as it is journalled."""
    return " ".join(said.split())[:LONGEST_REASON]


def judge_of(verdict: Compared) -> str:
    """What tells judges apart: a person may be called like a model."""
    return f"{verdict.by} {verdict.judge}"


def asked(verdicts: Iterable[Compared]) -> Counter[str]:
    """How many questions each model was asked, those with a known answer included."""
    return Counter(verdict.judge for verdict in verdicts if verdict.by == "model")
