"""How well two identical programs are told to be equally fast while other work keeps every core busy.

Run: `python benchmarks/exclusive.py [--comparisons 100] [--lives 11] [--repeats 3] [--load 2] [--provider bubblewrap]
[--json FILE]`. Each comparison is one evaluation of a task that times a candidate against the seed, call by call in
turns, and both are the same program: in so many lives (processes) of both, with so many repeats in each. With and
without `exclusive = true` in turns, so that a busy machine is busy for both. What should come out is 0 %; the table
says how far off each way of summing up the repeats is.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from evogit.config import Task, load_task
from evogit.core import BaseFiles, Files
from evogit.evaluation.evaluator import Evaluator
from evogit.sandbox.archive import pack

TASK = """
name = "timed"
goal = "Be quick."
editable = ["program.py"]
[metrics.seconds]
direction = "minimize"
[evaluator]
kind = "python"
file = "evaluator/evaluate.py"
[sandbox]
timeout = "60s"
"""

EVALUATE = """
import json, os
from evogit import Case

def evaluate(program, split, seed):
    pair = (program, seed)
    times = [[], []]
    for repeat in range({repeats}):
        if repeat % {each} == 0:
            for program in pair:
                program.call("program:work", [{size}], fresh=True)
        for side in (0, 1) if repeat % 2 else (1, 0):
            reply = pair[side].call("program:work", [{size}])
            times[side].append([reply.cpu, reply.wall])
    yield Case("times", feedback=json.dumps(times), seconds=0)
"""

PROGRAM = """
def work(size):
    table = {}
    for number in range(size):
        table[number * 7919 % 10007] = number * number % 97
    return sum(table.values())
"""

CALLS = 150_000
"""Size of the work of one call: about 20 ms of CPU."""

Series = Sequence[float]
WAYS: dict[str, Callable[[Series, Series], float]] = {
    "one call each": lambda a, b: a[0] / b[0],
    "mean": lambda a, b: statistics.fmean(a) / statistics.fmean(b),
    "median": lambda a, b: statistics.median(a) / statistics.median(b),
    "median of ratios": lambda a, b: statistics.median(x / y for x, y in zip(a, b, strict=True)),
    "minimum": lambda a, b: min(a) / min(b),
}
CLOCKS = ("cpu", "wall")


@contextlib.contextmanager
def load(processes: int) -> Iterator[None]:
    """Busy loops, spread evenly over the cores and pinned to them."""
    cores = sorted(os.sched_getaffinity(0))
    loops = []
    for number in range(processes):
        loops.append(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
        os.sched_setaffinity(loops[-1].pid, {cores[number % len(cores)]})
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def timed_task(folder: Path, lives: int, repeats: int) -> Task:
    """A task that compares a candidate's time with the seed's."""
    (folder / "seed").mkdir()
    (folder / "evaluator").mkdir()
    (folder / "task.toml").write_text(TASK)
    (folder / "seed" / "program.py").write_text(PROGRAM)
    (folder / "evaluator" / "evaluate.py").write_text(
        EVALUATE.format(repeats=lives * repeats, each=repeats, size=CALLS)
    )
    return load_task(folder)


async def compare(task: Task, provider: str, comparisons: int) -> dict[bool, list[list[list[Series]]]]:
    """Times of each comparison, without and with a core of their own: side, then clock, then repeat."""
    files = Files(pack({}), (), BaseFiles("seed", pack({"program.py": PROGRAM.encode()})))
    exclusive = replace(task, environment=replace(task.environment, exclusive=True))
    found: dict[bool, list[list[list[Series]]]] = {False: [], True: []}
    async with contextlib.AsyncExitStack() as stack:
        judges = {
            alone: await stack.enter_async_context(Evaluator(each, provider=provider, jobs=1))
            for alone, each in ((False, task), (True, exclusive))
        }
        for number in range(comparisons):
            for alone, judge in judges.items():
                _, evidence = await judge.evaluate(f"{number:040}", files, split="train")
                sides = json.loads(evidence.feedback["times"])
                found[alone].append([[*map(list, zip(*side, strict=True))] for side in sides])
    return found


def summary(comparisons: list[list[list[Series]]], clock: int, way: str) -> dict[str, float]:
    """How far from equal, in percent: median, 95th percentile, the worst, and how many of them are below 2."""
    off = sorted(abs(100 * (WAYS[way](a[clock], b[clock]) - 1)) for a, b in comparisons)
    within = sum(each < 2 for each in off)
    figures = {"median": statistics.median(off), "p95": off[int(0.95 * (len(off) - 1))], "worst": off[-1]}
    return {**{name: round(value, 3) for name, value in figures.items()}, "within": within}


def main() -> None:
    """Measure, print a table and a line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--comparisons", type=int, default=100)
    parser.add_argument("--lives", type=int, default=11)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--load", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--provider", default="bubblewrap")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, load(options.load):
        task = timed_task(Path(folder), options.lives, options.repeats)
        found = asyncio.run(compare(task, options.provider, options.comparisons))
    rows = [
        {"exclusive": alone, "clock": clock, "way": way, **summary(each, number, way)}
        for alone, each in found.items()
        for number, clock in enumerate(CLOCKS)
        for way in WAYS
    ]
    calls = [time for each in found[True] for side in each for time in side[0]]
    shape = f"{options.lives} lives with {options.repeats} repeats of {1000 * statistics.median(calls):.1f} ms CPU"
    print(f"{options.comparisons} comparisons of {shape}, {options.load} busy loops on {os.cpu_count()} cores,")
    print(f"sandbox {options.provider}; off by, in percent:")
    layout = "{:>9} {:>5} {:>17} {:>8} {:>8} {:>8} {:>10}"
    print(layout.format("exclusive", "clock", "summed up by", "median", "95 %", "worst", "below 2 %"))
    for row in rows:
        first = "yes" if row["exclusive"] else "no", row["clock"], row["way"]
        print(layout.format(*first, row["median"], row["p95"], row["worst"], f"{row['within']}/{options.comparisons}"))
    result = json.dumps({**{k: v for k, v in vars(options).items() if k != "json"}, "rows": rows})
    print(result)
    if options.json:
        options.json.write_text(result + "\n")


if __name__ == "__main__":
    main()
