"""What a score made of times measures where inputs are large: how much faster a function that does nothing is.

Run: `python benchmarks/transport.py [--sizes 100 300 500] [--lives 11] [--provider bubblewrap] [--ways NAME ...]`.
The task is stable matching, as a speed task that was written from docs/tasks.md alone: two lists of preferences for
each couple of sides, seed and candidate in turns. The candidate returns at once. What should come out is a large
number; what it is made of are the time of the seed and what a call costs that does nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
from pathlib import Path

from evogit.config import load_task
from evogit.core import BaseFiles, Files
from evogit.evaluation.evaluator import Evaluator
from evogit.sandbox.archive import pack

TASK = """
name = "matching"
goal = "Be quick."
editable = ["matching.py"]
[metrics.slowness]
direction = "minimize"
[evaluator]
kind = "python"
file = "evaluator/evaluate.py"
[sandbox]
timeout = "60s"
"""

EVALUATE = """
import json
from evogit import Case

def drawn(rng, size):
    return [rng.sample(range(size), size) for _ in range(size)]

def evaluate(program, split, seed, rng):
    took = [[], []]
    for life in range({lives}):
        args = [drawn(rng, {size}), drawn(rng, {size})]
        other = [drawn(rng, {size}), drawn(rng, {size})]
        {given}
        for side in (0, 1) if life % 2 else (1, 0):
            reply = (program, seed)[side].measure("matching:match", args, {options})
            took[side].append([reply.cpu, reply.wall])
    yield Case("times", feedback=json.dumps(took), slowness=0)
"""

WAYS = {
    "lists": ("", ""),
    "lists, warmed up": ("", "warmup=other"),
    "put": ("args = [program.put(each) for each in args]", ""),
    "array, warmed up": (
        "args, other = ([array('H', sum(side, [])) for side in each] for each in (args, other))",
        "warmup=other",
    ),
}
"""How the inputs get there: a line of the evaluator, options of `measure`."""

SEED = """
def match(one, other):
    if not isinstance(one, list):
        size = round(len(one) ** 0.5)
        one, other = ([list(each[row * size : (row + 1) * size]) for row in range(size)] for each in (one, other))
    size = len(one)
    rank = [[0] * size for _ in range(size)]
    for mine, choices in zip(rank, other):
        for place, each in enumerate(choices):
            mine[each] = place
    free, asked, pair = list(range(size)), [0] * size, [None] * size
    while free:
        asking = free.pop()
        choice = one[asking][asked[asking]]
        asked[asking] += 1
        if pair[choice] is None:
            pair[choice] = asking
        elif rank[choice][asking] < rank[choice][pair[choice]]:
            free.append(pair[choice])
            pair[choice] = asking
        else:
            free.append(asking)
    return pair
"""

NOTHING = """
def match(one, other):
    return [0]
"""

Times = list[list[float]]


async def times(provider: str, way: str, size: int, lives: int) -> tuple[Times, Times]:
    """CPU and wall clock of each life of the candidate, and of the seed."""
    given, options = WAYS[way]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("seed", "evaluator"):
            (folder / part).mkdir()
        (folder / "task.toml").write_text(TASK)
        (folder / "seed" / "matching.py").write_text(SEED)
        evaluate = EVALUATE.format(lives=lives, size=size, given=given, options=options)
        (folder / "evaluator" / "evaluate.py").write_text(f"from array import array\n{evaluate}")
        files = Files(
            pack({"matching.py": NOTHING.encode()}), (), BaseFiles("seed", pack({"matching.py": SEED.encode()}))
        )
        async with Evaluator(load_task(folder), provider=provider, jobs=1) as evaluator:
            evaluation, evidence = await evaluator.evaluate("0" * 40, files, split="train")
        if not evaluation.ok:
            raise SystemExit(f"{way}: {evaluation.reason}\n{evidence.log}")
        candidate, seed = json.loads(evidence.feedback["times"])
    return candidate, seed


def main() -> None:
    """Measure, print a table and a line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=[100, 300, 500])
    parser.add_argument("--lives", type=int, default=11)
    parser.add_argument("--provider", default="bubblewrap")
    parser.add_argument("--ways", nargs="*", default=list(WAYS))
    options = parser.parse_args()
    layout = "{:>18} {:>5} {:>10} {:>12} {:>10} {:>10}"
    print(layout.format("inputs", "size", "seed, ms", "nothing, ms", "cpu ratio", "wall ratio"))
    rows = []
    for way in options.ways:
        for size in options.sizes:
            candidate, seed = asyncio.run(times(options.provider, way, size, options.lives))
            ratios = [
                statistics.median(b[clock] / a[clock] for a, b in zip(candidate, seed, strict=True)) for clock in (0, 1)
            ]
            cpu = [1000 * statistics.median(each[0] for each in side) for side in (seed, candidate)]
            print(layout.format(way, size, *(f"{each:.3f}" for each in cpu), *(f"{each:.1f}" for each in ratios)))
            rows.append({"inputs": way, "size": size, "seed": cpu[0], "nothing": cpu[1], "ratios": ratios})
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
