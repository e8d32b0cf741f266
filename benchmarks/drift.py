"""Measures the claims of runs on a machine whose pace changes: `python benchmarks/drift.py [--runs N]`.

Real engines evolve sixteen candidates in memory. A simulated machine measures their time, with noise of 3 % and at a
pace that changes: all candidates are as fast as the seed, or one of them saves 10 %. Printed are the runs that called
something better, those that found the planted one, and those whose interval of its gain holds the truth. About 0.3 s
of CPU for each of the 6 N runs. docs/design/noise.md has the figures.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import random
import re
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec.structs import replace

from evogit.agents import Agent, Brief, Proposal
from evogit.config import Task, load_task
from evogit.core import Metric
from evogit.history import History
from evogit.history.paired_scores import PairedScores
from evogit.repository import Repository
from evogit.run import Run, Settings
from evogit.testing import Answer, Asked, InMemoryBackend

TASK = """
name = "drift"
goal = "Nothing."
editable = ["program.py"]
[metrics.seconds]
direction = "minimize"
[evaluator]
kind = "python"
file = "evaluator/evaluate.py"
novelty = "tree"
"""

SECONDS = Metric(name="seconds", direction="minimize", primary=True, scale="log")
CANDIDATES = 16
PLANTED = 11
"""The candidate that saves time, where one does."""
SPREAD = 0.03
"""Standard deviation of the logarithm of a measurement."""
SAVED = 0.1

Pace = Callable[[int], float]
"""The slowness of the machine in the evaluation of a number: 2.0 is half as fast."""

PACES: Mapping[str, Pace] = {
    "steady": lambda number: 1.0,
    "half as fast from the middle on": lambda number: 1.0 if number < 20 else 2.0,
    "half as fast for a while": lambda number: 2.0 if 14 <= number < 34 else 1.0,
}


class Next(Agent):
    """An agent that proposes the numbers from 1 on."""

    kind = "next"

    def __init__(self) -> None:
        self._number = 0

    async def propose(self, brief: Brief, rng: random.Random) -> Proposal:
        """Propose the next number."""
        await asyncio.sleep(0)
        self._number += 1
        return Proposal(changes={"program.py": b"# %d\n" % self._number}, title=f"number {self._number}")


class Machine(InMemoryBackend):
    """Measures candidates at a pace; `saved` is the share of the time that the candidate PLANTED saves."""

    def __init__(self, task: Task, pace: Pace, saved: float, seed: int) -> None:
        super().__init__(task, self._measured)
        self._pace, self._saved = pace, saved
        self._rng = random.Random(seed)

    def _measured(self, asked: Asked) -> Answer:
        found = re.search(rb"# (\d+)\n", asked.files.changed)
        worth = 1 - self._saved * (found is not None and int(found[1]) == PLANTED)
        return worth * self._pace(asked.number) * math.exp(self._rng.gauss(0, SPREAD))


def evolve(path: Path, task: Task, pace: Pace, saved: float, seed: int) -> History:
    """Evolve in a new repository at `path`; the history in the end."""
    task = replace(task, metrics=(SECONDS,), repeats=3, measures="time")
    settings = Settings(evaluations=1 + CANDIDATES, seed=seed)
    backend = Machine(task, pace, saved, seed)
    run = Run(Repository.create(path), task, "r", settings, agents=[Next()], backend=backend)
    asyncio.run(run.evolve())
    return run.history


def claims(history: History) -> bool:
    """Return whether a run calls its best better than the seed."""
    best, seed = history.best or "", history.seed or ""
    return best != seed and history.surely_fitter(best, seed)


def found(history: History) -> bool:
    """Return whether the best is the planted candidate, and called better."""
    return claims(history) and history.phylogeny[history.best or ""].title == f"number {PLANTED}"


def holds(history: History) -> bool:
    """Return whether the interval of the best's gain holds what the planted candidate saves."""
    scores = history.scores
    assert isinstance(scores, PairedScores)
    above, half = scores.ratio(history.best or "", history.seed or "")
    return abs(above - math.log(1 - SAVED)) <= half


def _written(folder: Path) -> Path:
    """Write a task whose evaluator is never called."""
    for name in ("seed", "evaluator"):
        (folder / name).mkdir(parents=True)
    (folder / "task.toml").write_text(TASK)
    (folder / "seed" / "program.py").write_text("")
    (folder / "evaluator" / "evaluate.py").write_text("def evaluate(program, split):\n    pass\n")
    return folder


def main() -> None:
    """Print what runs claim at each pace."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=100)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder:
        task = load_task(_written(Path(folder, "task")))
        for name, pace in PACES.items():
            same, planted = (
                [evolve(Path(folder, f"{name} {saved} {seed}"), task, pace, saved, seed) for seed in range(runs)]
                for saved in (0.0, SAVED)
            )
            right = [history for history in planted if found(history)]
            pairs = sum(history.counts.repeated + history.counts.references for history in [*same, *planted])
            print(
                f"{name}: {sum(map(claims, same))} of {runs} claim a gain where there is none; {len(right)} find the "
                f"planted one, the interval holds it in {sum(map(holds, right))}; {pairs / runs / 2:.0f} evaluations "
                f"beside {1 + CANDIDATES}"
            )


if __name__ == "__main__":
    main()
