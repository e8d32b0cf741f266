"""How often a noisy run reports the truly best candidate, and how often it says that two are tied.

Run: `python benchmarks/noise.py [--runs 100] [--scales] [--json FILE]`. There are 200 candidates whose true
values are normal scores (Blom, 1958), one measurement of each, noise with a standard deviation as large as the lead of
the best one, and at most 200 extra measurements, chosen by the policy of `evogit/stats/estimates.py`, which is not told
the noise.

With `--scales` it is measured how many 95 % intervals hold, and how wide they are, where noise grows with the value and
where it does not, on the linear scale, on the log scale, and on the one that a run takes by itself.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import NormalDist, fmean
from typing import Any

from evogit.core import Evaluation, Metric
from evogit.history.scores import Scores
from evogit.stats.estimates import Estimate, Noise, duel

AMOUNT, ALLOWANCE = 200, 200

Outcome = tuple[int, int, list[int]]
"""Rank of the reported best (0 is truly best), extra measurements, ranks of those it is tied with."""


def scores(amount: int) -> list[float]:
    """Normal scores, best first: what the ordered values of a normal sample are expected to be."""
    return [NormalDist().inv_cdf((rank - 3 / 8) / (amount + 1 / 4)) for rank in range(amount, 0, -1)]


def draw(truth: Sequence[float], sd: float, run: int, rank: int, repeat: int) -> float:
    """A measurement, the same whenever it is asked for."""
    return truth[rank] + random.Random(f"{run} {rank} {repeat}").gauss(0, sd)


def pure(truth: Sequence[float], sd: float, run: int) -> Outcome:
    """The policy alone, on a table of values."""
    values = {str(rank): [draw(truth, sd, run, rank, 0)] for rank in range(len(truth))}
    field = {name: Estimate.of(each) for name, each in values.items()}
    noise, used = Noise(), 0
    while used < ALLOWANCE and (found := duel(field)) and not found.decided(field, noise):
        name = found.next(field)
        values[name].append(draw(truth, sd, run, int(name), len(values[name])))
        field[name], used = Estimate.of(values[name]), used + 1
        noise.learn(name, dict(enumerate(values[name])))
    best = max(field, key=lambda name: field[name].mean)
    near = [
        int(name)
        for name, each in field.items()
        if name != best and field[best].mean - each.mean <= noise.margin(field[best].times, each.times)
    ]
    return int(best), used, near


# --- scales -------------------------------------------------------------------------------------------------------

MEANT = {"seed": (1.0, 4), "slow": (0.5, 1), "good": (12.0, 4), "best": (60.0, 4), "late": (58.0, 2)}
"""Candidates of a task whose score is a ratio to the seed's: what they are worth, and how often they are measured."""


def simulated(scale: str, noise: Callable[[float], float]) -> Scores:
    """The scores of one run that measures those candidates."""
    metric = Metric(name="score", direction="maximize", primary=True, scale=scale)  # type: ignore[arg-type]
    scores = Scores.of((metric,), "train", 3)
    for name, (value, times) in MEANT.items():
        for repeat in range(times):
            scores.record(name, Evaluation(status="ok", metrics={"score": noise(value)}, repeat=repeat))
    return scores


def coverage(runs: int) -> list[dict[str, Any]]:
    """Return how many intervals of means and of gains over the seed hold, by the kind of noise and the scale."""
    kinds: dict[str, Callable[[random.Random], Callable[[float], float]]] = {
        "5 % of the value": lambda rng: lambda value: value * math.exp(rng.gauss(0, 0.05)),
        "30 % of the value": lambda rng: lambda value: value * math.exp(rng.gauss(0, 0.3)),
        "0.05 of the unit": lambda rng: lambda value: value + rng.gauss(0, 0.05),
    }
    return [
        {
            "noise": kind,
            "scale": scale or "found",
            **_held([simulated(scale, noise(random.Random(run))) for run in range(runs)]),
        }
        for kind, noise in kinds.items()
        for scale in ("linear", "log", "")
    ]


def _held(found: Sequence[Scores]) -> dict[str, Any]:
    """A gain on a log scale is a ratio, which is told in the unit by the seed's value."""
    means = [(MEANT[name][0], scores.interval(name) or (0.0, 0.0)) for scores in found for name in MEANT]
    gains = [
        (
            (MEANT[name][0] - 1) * (scores.fitness("seed") or 0.0 if scores.scale.log else 1),
            scores.gain_ends(name, "seed"),
        )
        for scores in found
        for name in MEANT
        if name != "seed"
    ]
    seeds = [scores.interval("seed") or (0.0, 0.0) for scores in found]
    return {
        "log scale %": 100 * fmean(scores.scale.log for scores in found),
        "of means %": 100 * fmean(low <= value <= high for value, (low, high) in means),
        "of gains %": 100 * fmean(low <= value <= high for value, (low, high) in gains),
        "width of the seed's": fmean(high - low for low, high in seeds),
        "false better %": 100 * fmean(scores.surely_better("late", "best") for scores in found),
    }


# --- the table ----------------------------------------------------------------------------------------------------


def measure(runs: int) -> list[dict[str, Any]]:
    """The best leading by its gap, and the two best being equal, with the same noise."""
    truth = scores(AMOUNT)
    gap, rows = truth[0] - truth[1], list[dict[str, Any]]()
    for case, values in (("gap = sd", truth), ("top two equal", [truth[1], *truth[1:]])):
        found = [pure(values, gap, run) for run in range(runs)]
        equal = 1 if case == "gap = sd" else 2
        rows.append(
            {
                "case": case,
                "runs": runs,
                "best is truly best": sum(best < equal for best, _, _ in found),
                "told as tied": sum(bool(near) for _, _, near in found),
                "tied with the equal one": sum({best, *near} >= {0, 1} for best, _, near in found),
                "extra measurements": fmean(used for _, used, _ in found),
            }
        )
    return rows


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--scales", action="store_true", help="how many intervals hold on which scale")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    rows = coverage(given.runs) if given.scales else measure(given.runs)
    print("  ".join(f"{name:>23}" for name in rows[0]))
    for row in rows:
        print("  ".join(f"{value:>23.1f}" if isinstance(value, float) else f"{value:>23}" for value in row.values()))
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
