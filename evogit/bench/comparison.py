"""From the runs of a bench to what may be said of its methods, task by task and over all tasks."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Literal

from msgspec import Struct

from evogit.bench.bench import Bench
from evogit.bench.methods import DEFAULT, Method, is_control
from evogit.bench.outcome import BenchRun, Call
from evogit.bench.workers import Order
from evogit.core import Direction
from evogit.stats import paired_tests
from evogit.stats.scales import mean

FIRST = 25
"""The first number of evaluations at which methods are compared; the next ones are twice as many each."""

AVERAGED = ("proposals", "duplicates", "failed_proposals", "failed", "repeated", "seconds", "dollars", "tokens")
"""Numbers of runs that are shown as their mean."""

Verdict = Literal["better", "no worse", "worse", "open"]
"""`better` and `no worse` (within the margin): the test says so at 5 %; `worse`: the same test the other way."""


class Interval(Struct, frozen=True, kw_only=True):
    """A mean and its 95 % bootstrap interval."""

    mean: float
    low: float
    high: float


class Reached(Struct, frozen=True, kw_only=True):
    """The means of the believed bests at some cost; `holdout` is None where one of them is not valid there."""

    value: float
    holdout: float | None


class MethodResult(Struct, frozen=True, kw_only=True):
    """One method on a task: means over its runs; `area` and `final` are normalised, `value` and `at` are not."""

    method: str
    selector: str
    agents: str
    value: float
    at: Mapping[int, float]
    area: Interval
    final: Interval
    proposals: float
    duplicates: float
    failed_proposals: float
    failed: float
    repeated: float
    seconds: float
    dollars: float
    tokens: float


class Comparison(Struct, frozen=True, kw_only=True):
    """One method against another over the pairs of equal seeds, in normalised area.

    `better`, `not_inferior` and `worse` are one-sided p; `wins`, `ties` and `losses` count pairs.
    """

    method: str
    against: str
    difference: Interval
    better: float
    not_inferior: float
    worse: float
    wins: int
    ties: int
    losses: int

    @property
    def verdict(self) -> Verdict:
        """What may be said."""
        if self.better <= paired_tests.ALPHA:
            return "better"
        if self.not_inferior <= paired_tests.ALPHA:
            return "no worse"
        return "worse" if self.worse <= paired_tests.ALPHA else "open"


class Findings(Struct, frozen=True, kw_only=True):
    """What a bench on one task found; `seed_value` is 0 and `top` is 1 of normalised values."""

    task: str
    metric: str
    direction: Direction
    split: str
    evaluations: int
    seeds: tuple[int, ...]
    seed_value: float
    top: float
    top_known: bool
    results: tuple[MethodResult, ...]
    comparisons: tuple[Comparison, ...]
    curves: Mapping[str, Sequence[Sequence[float]]]
    """Method -> the curve of each run, normalised."""
    at_calls: Mapping[str, Mapping[int, Reached]]
    at_tokens: Mapping[str, Mapping[int, Reached]]
    """Method that asks models -> calls that brought a reply, or tokens, that all runs used -> what it had then."""


def findings(bench: Bench, done: Mapping[Order, BenchRun]) -> Findings | None:
    """Sum up the seeds for which the runs of all methods are done; None while there is no such seed."""
    bench_task = bench.bench_task
    seeds = tuple(seed for seed in bench.seeds if all((method, seed) in done for method in bench.methods))
    if not seeds:
        return None
    metric = bench_task.task.primary
    runs = {each.name: [done[each, seed].curve for seed in seeds] for each in bench.methods}
    shown = [curve for curves in runs.values() for curve in curves]
    seed_value = mean([curve[0] for curve in shown])
    pick = max if metric.direction == "maximize" else min
    known = metric.best_known if bench_task.split == "train" else None  # of other cases another value is the best
    if known is not None and metric.gain(known, seed_value) <= 0:
        known = None  # where the seed beats it there is no way from one to the other
    top = pick(value for curve in shown for value in curve) if known is None else known
    curves = {
        name: [[paired_tests.normalised(value, seed_value, top) for value in curve] for curve in each]
        for name, each in runs.items()
    }
    budget = bench_task.evaluations
    areas = {name: [paired_tests.area(curve, budget) for curve in each] for name, each in curves.items()}
    finals = {name: [curve[:budget][-1] for curve in each] for name, each in curves.items()}
    asking = [each for each in bench.methods if bench.asks(each)]
    at_calls, at_tokens = at_costs({each.name: [done[each, seed].paid for seed in seeds] for each in asking})
    return Findings(
        task=bench_task.task.name,
        metric=metric.name,
        direction=metric.direction,
        split=bench_task.split,
        evaluations=bench_task.evaluations,
        seeds=seeds,
        seed_value=seed_value,
        top=top,
        top_known=known is not None,
        results=tuple(
            _result(bench, each, [done[each, seed] for seed in seeds], areas[each.name], finals[each.name])
            for each in bench.methods
        ),
        comparisons=tuple(
            _comparison(method, other, areas[method], areas[other], bench_task.task.name)
            for method, other in _pairs([each.name for each in bench.methods])
        ),
        curves=curves,
        at_calls=at_calls,
        at_tokens=at_tokens,
    )


def at_costs(
    paid: Mapping[str, Sequence[Sequence[Call]]],
) -> tuple[Mapping[str, Mapping[int, Reached]], Mapping[str, Mapping[int, Reached]]]:
    """Return what the runs of each method had at equal calls, and at equal tokens; nothing where runs made no call."""
    every = [calls for runs in paid.values() for calls in runs]
    if not every or min(map(len, every)) < 2:
        return {}, {}
    counts = sorted({1, *_quarters(min(map(len, every)) - 1)})
    tokens = _quarters(min(calls[-1].tokens for calls in every))
    at_calls = {name: {n: _reached([calls[n] for calls in runs]) for n in counts} for name, runs in paid.items()}
    at_tokens = {
        name: {n: _reached([[each for each in calls if each.tokens <= n][-1] for calls in runs]) for n in tokens}
        for name, runs in paid.items()
    }
    return at_calls, at_tokens


def _quarters(most: int) -> list[int]:
    return sorted({max(most * quarter // 4, 1) for quarter in (1, 2, 3, 4)})


def _reached(runs: Sequence[Call]) -> Reached:
    held = [run.holdout for run in runs if run.holdout is not None]
    return Reached(value=mean([run.value for run in runs]), holdout=mean(held) if len(held) == len(runs) else None)


def points(evaluations: int) -> list[int]:
    """25, 50, 100 and so on up to the last evaluation."""
    found: list[int] = []
    while (point := FIRST * 2 ** len(found)) < evaluations:
        found.append(point)
    return [*found, evaluations]


def _pairs(names: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs to compare: each method that is not a control with every control, and with the default or the first."""
    own = [name for name in names if not is_control(name)] or list(names[:1])
    usual = DEFAULT if DEFAULT in own else own[0]
    pairs = [(name, other) for name in own for other in names if other != name and is_control(other)]
    return pairs + [(name, usual) for name in own if name != usual]


def _result(
    bench: Bench, method: Method, runs: Sequence[BenchRun], areas: Sequence[float], finals: Sequence[float]
) -> MethodResult:
    bench_task = bench.bench_task
    reached = points(bench_task.evaluations)
    at = {point: mean([run.curve[min(point, len(run.curve)) - 1] for run in runs]) for point in reached}
    return MethodResult(
        method=method.name,
        selector=method.selector,
        agents=" ".join(map(str, method.population(bench_task.agents))),
        value=at[reached[-1]],
        at=at,
        area=_interval(areas, f"{bench_task.task.name} {method.name} area"),
        final=_interval(finals, f"{bench_task.task.name} {method.name} final"),
        **{name: fmean(getattr(run, name) for run in runs) for name in AVERAGED},
    )


def _interval(values: Sequence[float], label: str) -> Interval:
    low, high = paired_tests.interval(values, random.Random(label))
    return Interval(mean=fmean(values), low=low, high=high)


def _comparison(method: str, against: str, ours: Sequence[float], theirs: Sequence[float], task: str) -> Comparison:
    differences = [a - b for a, b in zip(ours, theirs, strict=True)]
    label = f"{task} {method} {against} area"
    return Comparison(
        method=method,
        against=against,
        difference=_interval(differences, label),
        better=paired_tests.greater(differences, random.Random(f"{label} better")),
        not_inferior=paired_tests.not_inferior(differences, random.Random(f"{label} not inferior")),
        worse=paired_tests.greater([-each for each in differences], random.Random(f"{label} worse")),
        wins=sum(each > 0 for each in differences),
        ties=sum(each == 0 for each in differences),
        losses=sum(each < 0 for each in differences),
    )
