"""How long selectors take to choose a move in a long run, beside recomputing what they keep.

    .venv/bin/python benchmarks/moves.py --candidates 10000 --json selectors.json

Candidates descend from each other as in a run of 16 agents: the parent is the best of four recent ones, a tenth has
two parents, a fifth failed. Fitness has two decimals, so that there are ties; each candidate has a second metric and
20 cases that it passes or fails. After each evaluated candidate one move of each selector is timed, in CPU time, as
others may be at work on the machine. Recomputing is the same move by a selector that sees the history for the first
time.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

from evogit.core import Adopted, Entry, Evaluated, Evaluation, Event, Metric, Proposed, RunStarted
from evogit.history import History
from evogit.selection import Selector
from evogit.selection.registry import Traits, open_selector

AGENTS = [f"a{number}" for number in range(1, 17)]
CASES = [f"case {number:02}" for number in range(20)]
METRICS = (Metric(name="score", direction="maximize", primary=True), Metric(name="length", direction="minimize"))

WARM = 200
"""Moves after which each island has planned a merge, and keeps what it needs for that."""

SELECTORS = [
    "elitist",
    "frugal",
    "weighted",
    "pareto:over=cases",
    "pareto:over=metrics",
    "map-elites:score=-50..300/50,length=0..1000/20",
    "islands",
]


class Life:
    """A run that grows by one candidate at a time."""

    def __init__(self) -> None:
        self.history = History("r")
        self._rng = random.Random(1)
        self._values: dict[str, float] = {}
        self._recent: list[str] = []
        known = {"task": "", "task_digest": "", "evaluator": "", "provider": "", "image": "", "population": ""}
        self._add(RunStarted(engine="e", metrics=METRICS, split="train", agents=tuple(AGENTS), editable=(), **known))
        self.grow()

    def _add(self, event: Event) -> None:
        seq = self.history.seq + 1
        self.history.apply(Entry(id=f"{seq:x}", host="h", seq=seq, time=0, event=event))

    def _parents(self) -> tuple[str, ...]:
        if not self._recent:
            return ()
        drawn = sorted(self._rng.sample(self._recent, min(4, len(self._recent))), key=self._values.__getitem__)
        return tuple(drawn[-2:] if self._rng.random() < 0.1 else drawn[-1:])

    def grow(self) -> None:
        """One more candidate is born and evaluated."""
        rng, parents = self._rng, self._parents()
        commit, agent = f"{rng.getrandbits(160):040x}", rng.choice(AGENTS)
        operator = ("seed", "mutation", "merge")[len(parents)]
        move = self.history.moves
        born = {"tree": commit, "parents": parents, "agent": agent, "operator": operator}
        self._add(Proposed(engine="e", move=move, candidate=commit, **born))
        if parents and rng.random() < 0.2:
            self._add(Evaluated(candidate=commit, evaluation=Evaluation(status="crashed")))
            return
        value = round(max(map(self._values.__getitem__, parents), default=0.0) + rng.gauss(-0.3, 0.5), 2)
        metrics = {"score": value, "length": float(rng.randrange(1000))}
        cases = {name: {"score": float(rng.random() < 0.5)} for name in CASES}
        self._add(Evaluated(candidate=commit, evaluation=Evaluation(status="ok", metrics=metrics, cases=cases)))
        self._values[commit] = value
        self._recent = [*self._recent[-200:], commit]
        if agent not in self.history.heads or self.history.fitter(commit, self.history.head(agent)):
            self._add(Adopted(agent=agent, candidate=commit))


def traits() -> Traits:
    """The metrics, as a run has them."""

    def of(name: str):  # type: ignore[no-untyped-def]
        return lambda history, commit: history.evaluation(commit).metrics.get(name)

    return {metric.name: of(metric.name) for metric in METRICS}


def clocked(selector: Selector, history: History, number: int) -> float:
    """Milliseconds of CPU that one move takes."""
    rng = random.Random(number)
    begun = time.thread_time()
    selector.next_move(history, AGENTS[number % len(AGENTS)], rng)
    return (time.thread_time() - begun) * 1000


def rows(candidates: int, moves: int, again: int) -> Iterator[dict[str, object]]:
    """One row a selector, in milliseconds."""
    life = Life()
    while len(life.history.judgements) < candidates:
        life.grow()
    kept = {text: open_selector(text, traits()) for text in SELECTORS}
    for number in range(WARM):
        for selector in kept.values():
            clocked(selector, life.history, number)
    times: dict[str, list[float]] = {text: [] for text in SELECTORS}
    gc.freeze()  # what a collection costs depends on the history, not on who is at work when it begins
    for number in range(moves):
        life.grow()
        for text, selector in kept.items():
            times[text].append(clocked(selector, life.history, number))
    for text in SELECTORS:
        anew = [clocked(open_selector(text, traits()), life.history, number) for number in range(again)]
        median, high = statistics.median(times[text]), statistics.quantiles(times[text], n=100)[-1]
        ratio = statistics.median(anew) / median
        yield {"selector": text, "median": median, "p99": high, "anew": statistics.median(anew), "ratio": ratio}


def main() -> None:
    """Print the table, and write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--candidates", type=int, default=10_000)
    parser.add_argument("--moves", type=int, default=1000)
    parser.add_argument("--again", type=int, default=5, help="how often the move is recomputed")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    found = list(rows(asked.candidates, asked.moves, asked.again))
    print("| selector | median, ms | p99, ms | recomputed, ms | ratio |\n|---|---|---|---|---|")
    for row in found:
        print("| `{selector}` | {median:.3f} | {p99:.3f} | {anew:.1f} | {ratio:.0f} |".format(**row))
    if asked.json:
        asked.json.write_text(
            json.dumps({"candidates": asked.candidates, "moves": asked.moves, "rows": found}, indent=2)
        )


if __name__ == "__main__":
    main()
