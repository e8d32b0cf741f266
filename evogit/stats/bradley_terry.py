"""Strengths of candidates and the reliability of judges from verdicts on pairs, and the pair to compare next."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from evogit.stats.conjugate_gradients import solve

SPREAD = 2.0
"""Standard deviation of strengths before anything is known, in log-odds: a single win is not infinity."""

TRUST = (8.0, 2.0)
"""Right and wrong verdicts that a judge begins with: right 80 % of the time, until ten verdicts weigh as much."""

LEAST_DOUBT = 0.02  # no judge is taken to be right, or wrong, in more than 98 of 100 verdicts
LONGEST_STEP = 1.0  # how far one step may move a strength

STEPS = 200
CLOSE = 1e-5
"""A fit is done after so many steps, or when the last one moved nothing further than this."""

ROUGH, FINE = 0.05, 1e-4
"""Conjugate gradients stop when the residual's norm fell to this share of the first: for a step, for an error."""


@dataclass(slots=True)
class Comparisons:
    """Wins by pair and judge; items and judges are numbered in the order in which they came."""

    items: dict[str, int] = field(default_factory=dict)
    judges: dict[str, int] = field(default_factory=dict)
    wins: dict[tuple[int, int, int], list[float]] = field(default_factory=dict)
    """(judge, item, later item) -> wins of the one, wins of the other, ties."""
    known: dict[int, list[int]] = field(default_factory=dict)
    """Judge -> right and wrong answers to questions whose answer is known."""
    met: dict[str, Counter[str]] = field(default_factory=dict)
    """Item -> how often it met each other one."""

    def add(self, judge: str, a: str, b: str, score: float) -> None:
        """One verdict: `score` is 1 where `a` won, 0 where `b` did, 0.5 for a tie."""
        number = self._judge(judge)
        i, j = (self.items.setdefault(item, len(self.items)) for item in (a, b))
        if i > j:
            i, j, score = j, i, 1 - score
        row = self.wins.setdefault((number, i, j), [0.0, 0.0, 0.0])
        row[{1.0: 0, 0.0: 1}.get(score, 2)] += 1
        self.met.setdefault(a, Counter())[b] += 1
        self.met.setdefault(b, Counter())[a] += 1

    def add_known(self, judge: str, *, right: bool) -> None:
        """One answer to a question whose answer is known: it tells of the judge alone."""
        self.known.setdefault(self._judge(judge), [0, 0])[not right] += 1

    def _judge(self, judge: str) -> int:
        return self.judges.setdefault(judge, len(self.judges))


@dataclass(frozen=True)
class Fit:
    """What verdicts say about items and judges.

    Strengths are in log-odds: a judge who is never wrong prefers x to y with a chance of 1 / (1 + exp(y - x)). Nought
    is the strength of what was not compared yet.
    """

    items: dict[str, int]
    judges: dict[str, int]
    strengths: Sequence[float] = ()
    trust: Sequence[float] = ()
    edges: Sequence[tuple[int, int, float]] = ()
    """(item, item, Fisher information about the difference of the two)."""

    def strength(self, item: str) -> float:
        """The most likely strength."""
        return self.strengths[self.items[item]] if item in self.items else 0.0

    def variance(self, item: str) -> float:
        """Of a strength when all others are known exactly: quick, and too small where few links join many items."""
        return 1 / self._diagonal[self.items[item]] if item in self.items else SPREAD**2

    def error(self, item: str) -> float:
        """The standard error of a strength: the root of its diagonal element in the inverse of the information."""
        if item not in self.items:
            return SPREAD
        unit = [0.0] * len(self.strengths)
        unit[self.items[item]] = 1.0
        return math.sqrt(solve(self._diagonal, self.edges, unit, FINE)[self.items[item]])

    def preference(self, a: str, b: str) -> float:
        """The chance that a judge who is never wrong prefers `a` to `b`."""
        return 1 / (1 + math.exp(self.strength(b) - self.strength(a)))

    def reliability(self, judge: str) -> float:
        """The chance that this judge's verdict says what it saw, and not the opposite."""
        return self.trust[self.judges[judge]] if judge in self.judges else TRUST[0] / sum(TRUST)

    @cached_property
    def _diagonal(self) -> list[float]:
        return _diagonal(len(self.strengths), self.edges)


def fit(tally: Comparisons, start: Fit | None = None, steps: int = STEPS) -> Fit:
    """The strengths and the judges' reliability that explain the verdicts best, with priors on both.

    The model is Bradley-Terry (Bradley & Terry 1952) seen through judges who say the opposite of what they saw now and
    then: judge k prefers i to j with t_k s + (1 - t_k)(1 - s), s = logistic(x_i - x_j) (Crowd-BT: Chen, Bennett,
    Collins-Thompson, Horvitz 2013). A tie is half a win of each. Strengths have a Gaussian prior (as in Caron & Doucet
    2012, there gamma), reliabilities a beta one. Found by Fisher scoring of the strengths (Hunter 2004 compares it with
    his MM) and Newton steps of the reliabilities, in turn; a start near the answer saves steps.
    """
    count = len(tally.items)
    strengths = [start.strength(item) if start else 0.0 for item in tally.items]
    trust = [start.reliability(judge) if start else TRUST[0] / sum(TRUST) for judge in tally.judges]
    edges: list[tuple[int, int, float]] = []
    for _ in range(steps):
        gradient, edges, better = _slopes(tally, strengths, trust)
        shift = solve(_diagonal(count, edges), edges, gradient, ROUGH)
        longest = max(map(abs, shift), default=0.0)
        scale = min(1.0, LONGEST_STEP / longest) if longest else 0.0
        strengths = [old + scale * by for old, by in zip(strengths, shift, strict=True)]
        moved = max([longest, *(abs(old - new) for old, new in zip(trust, better, strict=True))])
        trust = better
        if moved < CLOSE:
            break
    return Fit(dict(tally.items), dict(tally.judges), strengths, trust, edges)


def _slopes(
    tally: Comparisons, strengths: Sequence[float], trust: Sequence[float]
) -> tuple[list[float], list[tuple[int, int, float]], list[float]]:
    """The gradient of the log-posterior by the strengths, the information of each pair, and better reliabilities."""
    gradient = [-x / SPREAD**2 for x in strengths]
    information: dict[tuple[int, int], float] = {}
    right, wrong = TRUST[0] - 1, TRUST[1] - 1
    exp = math.exp
    known = [tally.known.get(judge, (0, 0)) for judge in range(len(trust))]
    slope = [(right + yes) / t - (wrong + no) / (1 - t) for t, (yes, no) in zip(trust, known, strict=True)]
    bend = [(right + yes) / t**2 + (wrong + no) / (1 - t) ** 2 for t, (yes, no) in zip(trust, known, strict=True)]
    for (judge, i, j), (won, lost, tied) in tally.wins.items():
        t, s = trust[judge], 1 / (1 + exp(strengths[j] - strengths[i]))  # the prior keeps strengths far from overflow
        p = t * s + (1 - t) * (1 - s)
        steep, clear = (2 * t - 1) * s * (1 - s), 2 * s - 1
        pull = steep * (won / p - lost / (1 - p)) + tied * (0.5 - s)
        gradient[i] += pull
        gradient[j] -= pull
        about = (won + lost) * steep * steep / (p * (1 - p)) + tied * s * (1 - s)
        information[i, j] = information.get((i, j), 0.0) + about
        slope[judge] += clear * (won / p - lost / (1 - p))
        bend[judge] += clear * clear * (won / p**2 + lost / (1 - p) ** 2)
    moved = (t + up / down for t, up, down in zip(trust, slope, bend, strict=True))
    better = [min(1 - LEAST_DOUBT, max(LEAST_DOUBT, t)) for t in moved]
    return gradient, [(i, j, about) for (i, j), about in information.items()], better


def _diagonal(count: int, edges: Sequence[tuple[int, int, float]]) -> list[float]:
    diagonal = [1 / SPREAD**2] * count
    for i, j, about in edges:
        diagonal[i] += about
        diagonal[j] += about
    return diagonal


# --- the pair to compare next -----------------------------------------------------------------------------------------

Pair = tuple[str, str]


def gain(fit: Fit, a: str, b: str) -> float:
    """Return the value of a verdict on this pair: its information times the variance of the difference.

    For a small gain that is twice the expected information in nats, log(1 + p(1 - p) v) / 2 with a Gaussian posterior
    (D-optimal design; for paired comparisons Glickman & Jensen 2005).
    """
    chance = fit.preference(a, b)
    return chance * (1 - chance) * (fit.variance(a) + fit.variance(b))


def opponent(
    fit: Fit,
    tally: Comparisons,
    one: str,
    others: Sequence[str],
    rng: random.Random,
    avoid: Collection[frozenset[str]] = (),
) -> str | None:
    """Whom `one` should meet: someone of another connected part first, then where most is to be learned.

    Equals are drawn. `avoid` are pairs that shall not meet, such as the one that met last; None where none is left.
    """
    free = [each for each in others if each != one and frozenset((one, each)) not in avoid]
    if not free:
        return None
    linked = _reached(tally, one)
    return max(free, key=lambda each: (each not in linked, gain(fit, one, each), rng.random()))


def pairs(
    fit: Fit, tally: Comparisons, items: Sequence[str], rng: random.Random, avoid: Collection[frozenset[str]] = ()
) -> Iterator[Pair]:
    """Pairs worth comparing now, those of the least known first; none comes twice, so that all may be asked at once."""
    free = set(items)
    for one in sorted(items, key=lambda each: (-fit.variance(each), rng.random())):
        if one not in free:
            continue
        other = opponent(fit, tally, one, [each for each in items if each in free], rng, avoid)
        if other:
            free -= {one, other}
            yield (one, other) if rng.random() < 0.5 else (other, one)


def _reached(tally: Comparisons, one: str) -> set[str]:
    """All that verdicts link with `one`, itself included."""
    reached, frontier = {one}, [one]
    while frontier:
        found = set(tally.met.get(frontier.pop(), ())) - reached
        reached |= found
        frontier.extend(found)
    return reached
