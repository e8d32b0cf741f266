"""How well a ranking is found from verdicts of which one in five is wrong, and what a liar among the judges costs.

Run: `python benchmarks/judging.py [--seeds 20] [--json FILE]`. 50 candidates, 2 000 verdicts; each names the truly
better one with a chance of 0.8, however near the two are. A liar is right with a chance of 0.2 (it says the opposite of
what an honest judge would say) or never (of the truth). Kendall's tau of the strengths with the truth, mean over the
seeds. Must be: at least 0.80 on random pairs and 0.90 on the planner's; one liar in a panel of five costs at most 0.05.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from evogit.stats.bradley_terry import Comparisons, Fit, fit
from evogit.stats.pairs import Pair, pairs

CANDIDATES, VERDICTS, RIGHT = 50, 2000, 0.8

ROUND = 25
"""Verdicts on the planner's pairs before strengths are found again, with so many steps at most."""
STEPS = 4

Ask = Callable[[Pair], None]


def kendall(truth: Sequence[str], strength: Callable[[str], float]) -> float:
    """Kendall's tau (1938) of the strengths with the true order, worst first; a tie is half right."""
    signs = [
        (strength(better) > strength(worse)) - (strength(better) < strength(worse))
        for place, better in enumerate(truth)
        for worse in truth[:place]
    ]
    return statistics.fmean(signs)


def trial(
    seed: int, *, planned: bool, judges: int, liars: int, truthful: float = 1 - RIGHT, verdicts: int = VERDICTS
) -> tuple[float, Fit]:
    """One ranking: its tau and the last fit; `truthful` is the chance of a liar to be right."""
    rng = random.Random(seed)
    items = [f"c{number}" for number in range(CANDIDATES)]
    truth = rng.sample(items, len(items))
    place = {item: number for number, item in enumerate(truth)}
    tally = Comparisons()

    def ask(pair: Pair) -> None:
        a, b = pair
        judge = rng.randrange(judges)
        right = rng.random() < (truthful if judge < liars else RIGHT)
        tally.add(f"judge {judge}", a, b, float((place[a] > place[b]) == right))

    if planned:
        _planned(tally, items, rng, ask, verdicts)
    else:
        for _ in range(verdicts):
            a, b = rng.sample(items, 2)
            ask((a, b))
    final = fit(tally)
    return kendall(truth, final.strength), final


def _planned(tally: Comparisons, items: Sequence[str], rng: random.Random, ask: Ask, verdicts: int) -> None:
    now, asked, last = fit(tally), 0, frozenset[str]()
    while asked < verdicts:
        for pair in list(pairs(now, tally, items, rng, {last}))[: min(ROUND, verdicts - asked)]:
            ask(pair)
            asked, last = asked + 1, frozenset(pair)
        now = fit(tally, now, STEPS)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rows = []
    print("| pairs | judges | Kendall tau, mean | worst | reliabilities found (first seed) |\n|---|---|---|---|---|")
    for planned in (False, True):
        for judges, liars, truthful in ((1, 0, 0.0), (5, 0, 0.0), (5, 1, 1 - RIGHT), (5, 1, 0.0)):
            one = partial(trial, planned=planned, judges=judges, liars=liars, truthful=truthful)
            with ProcessPoolExecutor() as pool:
                runs = list(pool.map(one, range(arguments.seeds)))
            taus, names = [tau for tau, _ in runs], sorted(runs[0][1].judges)
            trust = ", ".join(f"{runs[0][1].reliability(name):.2f}" for name in names)
            who = f"{judges}" + (f", one right {truthful:.0%} of the time" if liars else "")
            way = "the planner's" if planned else "random"
            print(f"| {way} | {who} | {statistics.fmean(taus):.3f} | {min(taus):.3f} | {trust} |", flush=True)
            rows.append({"pairs": way, "judges": who, "taus": taus})
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))
    _show_time()


def _show_time() -> None:
    """How long one fit of all verdicts takes, from nothing and after one more verdict."""
    tally, rng = Comparisons(), random.Random(0)
    for _ in range(VERDICTS):
        a, b = sorted(rng.sample(range(CANDIDATES), 2))
        tally.add("judge", f"c{a}", f"c{b}", float(rng.random() < 1 - RIGHT))
    began = time.process_time()
    whole = fit(tally)
    middle = time.process_time()
    tally.add("judge", "c0", "c1", 0.0)
    fit(tally, whole)
    end = time.process_time()
    cold, warm = 1000 * (middle - began), 1000 * (end - middle)
    print(f"\nOne fit: {cold:.0f} ms of CPU from nothing, {warm:.0f} ms after one more verdict.")


if __name__ == "__main__":
    main()
