"""What the engine itself costs per candidate: everything but the agent's thinking and the evaluator's judging.

Run: `python benchmarks/engine.py [--candidates 10000] [--json FILE]`. The agent and the executor here answer at once,
so the time from one evaluation to the next is the engine's, Git included. The file system counts: TMPDIR chooses it.
Prints a table; the ratios are what to quote.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import resource
import statistics
import tempfile
import time
from pathlib import Path
from typing import Literal

from evogit.agents import Agent, Brief, Proposal
from evogit.config import Task, load_task
from evogit.core import Entry, Evaluated, Evaluation, Evidence, Files, Proposed
from evogit.engine.evaluations import EvaluationBackend
from evogit.repository import Repository
from evogit.run import Run, Settings

TASK = """
name = "null"
goal = "Nothing."
editable = ["program.py"]
[metrics.score]
direction = "maximize"
[evaluator]
kind = "python"
file = "evaluator/evaluate.py"
splits = ["train"]
"""


TURNS, STEP = 10, 30
"""How often each run is measured, and over how many candidates."""


class NullAgent(Agent):
    """Changes one number of the one file at once."""

    kind = "null"

    async def propose(self, brief: Brief, rng: random.Random) -> Proposal:
        """A new value somewhere in a file of a hundred lines, so that merges have hunks to work on."""
        lines = brief.files["program.py"].split(b"\n")
        lines[rng.randrange(len(lines) - 1)] = b"x = %d" % rng.getrandbits(60)
        return Proposal(changes={"program.py": b"\n".join(lines)}, title="a new number")


class NullExecutor(EvaluationBackend):
    """Judges at once, with two kilobytes of output as evidence and a score that mostly rises."""

    digest, provider, image = "0" * 64, "none", "0" * 64
    judged: Literal["outside"] = "outside"

    def __init__(self) -> None:
        self._score = 0

    def key(self, tree: str, split: str, repeat: int = 0, *, base: str = "") -> str:
        """Every tree is new."""
        return tree

    async def evaluate(self, tree: str, files: Files, *, split: str, repeat: int = 0) -> tuple[Evaluation, Evidence]:
        """One more than the last."""
        self._score += 1
        evaluation = Evaluation(status="ok", metrics={"score": self._score}, split=split, key=tree)
        return evaluation, Evidence(stdout=random.Random(self._score).randbytes(1024).hex().encode())


class Stopwatch:
    """Notes when each candidate's evaluation was part of the history."""

    def __init__(self) -> None:
        self.at: list[float] = []

    def entry(self, entry: Entry) -> None:
        """Note the time of an evaluation."""
        if isinstance(entry.event, Evaluated):
            self.at.append(time.perf_counter())

    def activity(self, agent: str, doing: str) -> None:
        """Of no interest here."""


def null_task(folder: Path) -> Task:
    """A task with a seed of a hundred lines."""
    (folder / "seed").mkdir(parents=True)
    (folder / "evaluator").mkdir()
    (folder / "task.toml").write_text(TASK)
    (folder / "seed" / "program.py").write_text("".join(f"x = {number}\n" for number in range(100)))
    (folder / "evaluator" / "evaluate.py").write_text("def evaluate(program, split):\n    yield\n")
    return load_task(folder)


class Unpacked(Repository):
    """A repository that is packed only when it is asked by name: packing is beside the loop, and measured apart."""

    async def pack(self) -> None:
        """Not now."""


class Null:
    """One run without thinking and evaluating, that can be made to grow."""

    def __init__(self, folder: Path, agents: int) -> None:
        self._task = null_task(folder / "task")
        self._repository = Unpacked.create(folder / "repository")
        self._agents = agents
        self._executor = NullExecutor()

    def pack(self) -> None:
        """Pack it as an engine does when it stops."""
        asyncio.run(Repository.open(self._repository.path).pack())

    def grow(self, candidates: int) -> list[float]:
        """Go on until there are so many; milliseconds from one evaluation to the next, without the start."""
        watch = Stopwatch()
        run = Run(
            self._repository,
            self._task,
            "null",
            Settings(evaluations=candidates),
            watch,
            agents=[NullAgent() for _ in range(self._agents)],
            backend=self._executor,
        )
        asyncio.run(run.evolve())
        times = [1000 * (after - before) for before, after in zip(watch.at, watch.at[1:], strict=False)]
        return times[self._agents :]


def engine(folder: Path, sizes: list[int], agents: int) -> dict[str, list[float]]:
    """Milliseconds per candidate in runs of these sizes, measured in turns so that a busy machine slows all alike.

    The last row is the largest run just packed, when ext4 makes files slowly for a while.
    """
    runs = {f"{size:,}": Null(folder / str(size), agents) for size in sizes}
    for size, run in zip(sizes, runs.values(), strict=True):
        run.grow(size)
    times: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(1, TURNS + 1):
        for size, (name, run) in zip(sizes, runs.items(), strict=True):
            times[name] += run.grow(size + turn * STEP)
    name, largest = list(runs.items())[-1]
    largest.pack()
    times[f"{name} packed"] = largest.grow(sizes[-1] + (TURNS + 3) * STEP)
    return times


def write_path(folder: Path, candidates: int) -> list[float]:
    """Milliseconds to store one candidate with its evidence: tree, commit, two keeps, two entries, one branch."""
    repository = Repository.create(folder)
    journal = repository.journal("r", lambda entry: None)
    times: list[float] = []
    tree = repository.trees.write(None, {"program.py": b"x = 1\n" * 100})
    parent = repository.commit(tree, (), author="a1", time=1, title="seed", trailers={})
    rng = random.Random(1)
    for number in range(candidates):
        content, output = b"x = %d\n" % number + rng.randbytes(1024).hex().encode(), rng.randbytes(1024).hex().encode()
        begin = time.perf_counter()
        tree = repository.trees.write(tree, {"program.py": content})
        parent = repository.commit(tree, (parent,), author="a1", time=number, title="t", trailers={"Agent": "a1"})
        journal.keep({}, parent)
        journal.append(_proposed(parent, tree, number))
        evidence = journal.keep({"stdout": output}, parent)
        journal.append(Evaluated(candidate=parent, evaluation=Evaluation(status="ok"), evidence=evidence))
        repository.move_branch("refs/heads/evogit/r/a1", parent)
        times.append(1000 * (time.perf_counter() - begin))
    return times


def _proposed(commit: str, tree: str, number: int) -> Proposed:
    return Proposed(
        engine="e", move=number, candidate=commit, tree=tree, parents=(), agent="a1", operator="mutation", title="t"
    )


def _quantile(values: list[float], share: float) -> float:
    return round(sorted(values)[int(share * (len(values) - 1))], 3)


def main() -> None:
    """Measure, print a table, and write JSON where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--candidates", type=int, default=10_000)
    parser.add_argument("--agents", type=int, default=4)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    sizes = [size for size in (100, 1000, 10_000) if size <= options.candidates]
    with tempfile.TemporaryDirectory() as folder:
        times = engine(Path(folder) / "runs", sizes, options.agents)
        writes = write_path(Path(folder) / "writes", 2000)
    medians = {name: round(statistics.median(each), 3) for name, each in times.items()}
    result = {
        "engine_ms": medians,
        "engine_p99_ms": {name: _quantile(each, 0.99) for name, each in times.items()},
        "ratio": round(medians[f"{sizes[-1]:,}"] / medians[f"{sizes[0]:,}"], 3),
        "write_ms": {"median": _quantile(writes, 0.5), "p99": _quantile(writes, 0.99)},
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    print(f"{'candidates':>14} {'engine ms, median':>18} {'p99':>8}")
    for name, median in medians.items():
        print(f"{name:>14} {median:>18.2f} {_quantile(times[name], 0.99):>8.2f}")
    print(f"ratio of the largest run's median to the smallest one's: {result['ratio']:.2f}")
    print("write path with evidence: median {median:.2f} ms, p99 {p99:.2f} ms".format(**result["write_ms"]))
    print(f"peak memory: {result['peak_memory_mb']} MB")
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
