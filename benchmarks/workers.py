"""What remote workers gain and cost, each way to reach them: evaluations of 0.5 s on one and two, and one's overhead.

Run: `python benchmarks/workers.py [--transports sh,ssh,srun,slurm,ray] [--evaluations 24] [--seconds 0.5]`. What takes
the time sleeps, so that the machine's cores do not matter. The overhead is that of an evaluation that takes no time, on
a warm worker with one place against this machine with one place, in turns. All but `sh` start servers of their own on
this machine: `clusters.py` says what to install for them.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import logging
import os
import shlex
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evogit.config import Task, load_task
from evogit.config.run_settings import WorkerSpec
from evogit.core import BaseFiles, Files
from evogit.evaluation.evaluator import Evaluator
from evogit.evaluation.team import Team
from evogit.sandbox.archive import pack

sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.clusters import ray_nodes, slurm, ssh_server  # noqa: E402

TASK = """
name = "sleeping"
goal = "Sleep."
editable = ["program.py"]
[metrics.score]
direction = "maximize"
[evaluator]
kind = "python"
file = "evaluator/evaluate.py"
"""

EVALUATE = """
import time
from evogit import Case

def evaluate(program, split):
    time.sleep({seconds})
    yield Case("one", score=program.call("program:value", [], returns=int).value)
"""

PROGRAM = b"def value(): return 1\n"
COMMAND = shlex.join([sys.executable, "-c", "from evogit.cli import main; main()", "worker"])
ARCHIVE = pack({"program.py": PROGRAM})
FILES = Files(pack({}), (), BaseFiles(hashlib.sha256(ARCHIVE).hexdigest(), ARCHIVE))


def task_of(folder: Path, seconds: float) -> Task:
    """A task whose evaluations take so long."""
    for part in ("seed", "evaluator"):
        (folder / part).mkdir(parents=True)
    (folder / "task.toml").write_text(TASK)
    (folder / "seed" / "program.py").write_bytes(PROGRAM)
    (folder / "evaluator" / "evaluate.py").write_text(EVALUATE.format(seconds=seconds))
    return load_task(folder)


async def took(backend: Evaluator | Team, number: int) -> float:
    """Seconds for so many evaluations that are asked for at once."""
    began = time.perf_counter()
    trees = [f"{each:040x}" for each in range(number)]
    done = await asyncio.gather(*(backend.evaluate(tree, FILES, split="train") for tree in trees))
    assert all(evaluation.ok for evaluation, _ in done), done[0]
    return time.perf_counter() - began


@contextmanager
def reached(transport: str, folder: Path) -> Iterator[str]:
    """The command that runs a worker behind this transport."""
    if transport == "sh":
        yield f"sh -c {shlex.quote(COMMAND)}"
    elif transport == "ssh":
        with ssh_server(folder) as ssh:
            yield shlex.join([*ssh, COMMAND])
    elif transport == "ray":
        with ray_nodes() as address:
            yield f"ray:{address}"
    else:
        with slurm(folder) as environment:
            os.environ.update(environment)
            yield "slurm:main" if transport == "slurm" else f"srun -n1 {COMMAND}"


def team(local: Evaluator, command: str, workers: int, provider: str) -> Team:
    """Workers with one place each, and no place here."""
    named = WorkerSpec(command, workers)
    specs = [named] if named.cluster else [WorkerSpec(command, 1, f"worker {number}") for number in range(workers)]
    return Team(local, specs, asked=provider, jobs=0)


async def rate(there: Team, workers: int, evaluations: int) -> float:
    """Evaluations per second of so many workers, once all are warm."""
    while await took(there, 2 * workers) > 0.75 * 2 * workers * await took(there, 1) and workers > 1:
        pass  # they are not all there yet
    return evaluations / await took(there, evaluations)


async def overhead(local: Evaluator, there: Team, times: int) -> tuple[float, float]:
    """Milliseconds of one evaluation here, and of one on a worker: medians of turns."""
    await took(local, 3)
    await took(there, 3)
    pairs = [(await took(local, 1), await took(there, 1)) for _ in range(times)]
    here, remote = (1000 * statistics.median(side) for side in zip(*pairs, strict=True))
    return here, remote


async def measure(command: str, folder: Path, options: argparse.Namespace) -> dict[str, float]:
    """All figures of one transport."""
    rates = []
    async with Evaluator(task_of(folder / "slow", options.seconds), provider=options.provider, jobs=1) as local:
        for workers in (1, 2):
            async with team(local, command, workers, options.provider) as there:
                rates.append(await rate(there, workers, options.evaluations))
    quick = Evaluator(task_of(folder / "quick", 0), provider=options.provider, jobs=1)
    async with quick as local, team(local, command, 1, options.provider) as there:
        here, remote = await overhead(local, there, options.times)
    one, two = rates
    return {"one": one, "two": two, "ratio": two / one, "here": here, "remote": remote, "overhead": remote - here}


def main() -> None:
    """Measure, and print a table and a line of JSON for each transport."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--transports", default="sh", help="sh, ssh, srun, slurm, ray, joined by commas")
    parser.add_argument("--evaluations", type=int, default=24)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--times", type=int, default=60)
    parser.add_argument("--provider", default="bubblewrap")
    parser.add_argument("--verbose", action="store_true", help="say what workers do")
    options = parser.parse_args()
    logging.disable(logging.NOTSET if options.verbose else logging.WARNING)
    for transport in options.transports.split(","):
        with tempfile.TemporaryDirectory() as name, reached(transport, Path(name)) as command:
            found = asyncio.run(measure(command, Path(name), options))
        print(f"{transport}: one worker {found['one']:.2f} evaluations of {options.seconds:g} s per second")
        print(f"  two workers   {found['two']:.2f}, {found['ratio']:.2f} times as many")
        print(
            f"  an evaluation {found['here']:.1f} ms here, {found['remote']:.1f} ms there: {found['overhead']:+.1f} ms"
        )
        print(json.dumps({"transport": transport, **{key: round(value, 3) for key, value in found.items()}}))


if __name__ == "__main__":
    main()
