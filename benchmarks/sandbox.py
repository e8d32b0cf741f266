"""Evaluations per second: warm sandboxes against `docker run` for each candidate, and against no sandbox at all.

Run: `python benchmarks/sandbox.py [--quick] [--json FILE]`.
Needs a Docker daemon and bubblewrap; two evaluations run at a time. Warm ways go through all of `Evaluator`:
evaluator process, cases, metrics, accounting. All ways take turns, so that a busy machine slows all alike.
Prints tables and one line of JSON; the ratios are what to quote.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any, Protocol

from candidates import Kind, Warm, kinds, task_of
from msgspec.structs import replace

from evogit.core import SandboxError
from evogit.evaluation.evaluator import Evaluator
from evogit.sandbox import Environment, Limits
from evogit.sandbox.archive import pack
from evogit.sandbox.docker.daemon import connect
from evogit.sandbox.docker.images import build_image
from evogit.sandbox.interpreter import choose
from evogit.sandbox.packages import packages_folder
from evogit.sandbox.providers import provider
from evogit.sandbox.session import Sandbox

JOBS = 2
OTHERS = ("docker run", "bare subprocess")
"""Ways without EvoGit, to which the others are compared."""
MEMORY = Path("/dev/shm")
"""Where those have their files, since sandboxes have theirs in memory too."""


class Way(Protocol):
    """One way to find out what a candidate is worth."""

    name: str

    async def evaluate(self, number: int) -> None:
        """Evaluate candidate `number`; raises AssertionError when the value is wrong."""
        ...


class Command:
    """A process for each candidate, on files that are written before and removed after it."""

    def __init__(self, name: str, kind: Kind, command: Sequence[str], variables: Mapping[str, str]) -> None:
        self.name = name
        self._kind = kind
        self._command = command
        self._variables = variables

    async def evaluate(self, number: int) -> None:
        """Write, run, remove."""
        await asyncio.to_thread(self._evaluate, number)

    def _evaluate(self, number: int) -> None:
        folder = Path(tempfile.mkdtemp(dir=MEMORY if MEMORY.is_dir() else None))
        for path, content in (*self._kind.tree.items(), ("program.py", self._kind.program(number))):
            (folder / path).parent.mkdir(exist_ok=True)
            (folder / path).write_bytes(content)
        command = [part.replace("FOLDER", str(folder)) for part in self._command]
        environment = {**os.environ, **self._variables}
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        assert done.stdout == f"{499500 + number}\n", (done.stdout, done.stderr)
        shutil.rmtree(folder)


# --- evaluations per second -------------------------------------------------------------------------------------


async def ways(kind: Kind, folder: Path, stack: AsyncExitStack) -> list[Way]:
    """All ways to evaluate candidates of a kind."""
    environment = Environment(packages=kind.packages)
    python, _ = choose(privileged=True)
    site = packages_folder(environment, sys.version_info[:2])
    variables = {"OPENBLAS_NUM_THREADS": "1"} | ({"PYTHONPATH": str(site)} if site else {})
    image = build_image(connect(), environment, print).id
    mounted = ["docker", "run", "--rm", "--network", "none", "-v", "FOLDER:/work:ro", "-w", "/work"]
    found: list[Way] = [
        Command("bare subprocess", kind, [str(python), "program.py"], variables),
        Command("docker run", kind, [*mounted, "--entrypoint", "python3", image, "program.py"], {}),
    ]
    for name, sandbox, changes in (
        ("docker fresh", "docker", {"isolation": "fresh"}),
        ("docker warm", "docker", {}),
        ("docker warm, gVisor", "docker", {"runtime": "runsc"}),
        ("bubblewrap warm", "bubblewrap", {}),
    ):
        task = task_of(folder / name.replace(",", "").replace(" ", "-").lower(), kind, replace(environment, **changes))
        evaluator = await stack.enter_async_context(Evaluator(task, provider=sandbox, jobs=JOBS))
        found.append(Warm(name, kind, evaluator))
    return found


async def rate(way: Way, seconds: float, first: int) -> tuple[float, int]:
    """Evaluations per second of lanes that go on for so long, and how many there were."""

    async def lane(number: int) -> tuple[float, int]:
        began, done = time.perf_counter(), 0
        while not done or time.perf_counter() < began + seconds:
            await way.evaluate(first + JOBS * done + number)
            done += 1
        return done / (time.perf_counter() - began), done

    lanes = await asyncio.gather(*map(lane, range(JOBS)))
    return sum(each for each, _ in lanes), sum(done for _, done in lanes)


async def rates(kind: Kind, rounds: int, seconds: float) -> dict[str, float]:
    """Median evaluations per second of every way that can do it, one round after another."""
    found: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        async with AsyncExitStack() as stack:
            remaining, number = await ways(kind, Path(folder), stack), 1
            for turn in range(rounds + 1):
                for way in [*remaining]:
                    try:
                        each, done = await rate(way, seconds if turn else 0.0, number)
                    except (AssertionError, SandboxError) as error:
                        print(f"{kind.name}: {way.name} cannot do it: {error}")
                        remaining.remove(way)
                        continue
                    number += JOBS * done
                    if turn:  # the first one only warms up
                        found.setdefault(way.name, []).append(each)
    return {name: statistics.median(each) for name, each in found.items()}


# --- round trips --------------------------------------------------------------------------------------------------


def round_trips(rounds: int) -> dict[str, dict[str, float]]:
    """Milliseconds of session, call and streamed item, and megabytes of a worker, of every provider in turns."""
    times: dict[str, dict[str, list[float]]] = {}
    with ExitStack() as stack:
        sandboxes = {name: provider(name) for name in ("docker", "bubblewrap", "none")}
        sandboxes["docker, gVisor"] = provider("docker", Environment(runtime="runsc"))
        for sandbox in sandboxes.values():
            stack.callback(sandbox.close)
        for turn in range(rounds + 1):
            for name, sandbox in sandboxes.items():
                measured = one_round(sandbox, 50 if name != "none" else 5)
                for what, each in measured.items() if turn else ():
                    times.setdefault(name, {}).setdefault(what, []).extend(each)
    return {
        name: {what: statistics.median(each) for what, each in rows.items()} | slowest(rows)
        for name, rows in times.items()
    }


def slowest(rows: Mapping[str, list[float]]) -> dict[str, float]:
    """The 99th percentile of what matters most."""
    return {"call p99": sorted(rows["call"])[int(0.99 * (len(rows["call"]) - 1))]}


def one_round(sandbox: Sandbox, sessions: int) -> dict[str, list[float]]:
    """Some sessions with one call each, then many calls and a stream in one."""
    files, limits, argument = pack({"m.py": b"def f(x):\n    return x + 1\n"}), Limits(), b'{"args":[1]}'
    times: dict[str, list[float]] = {"open, call, close": [], "open": [], "call": [], "streamed item": []}
    clock = time.perf_counter
    for _ in range(sessions):
        began = clock()
        with sandbox.open(files, limits) as session:
            times["open"].append(1000 * (clock() - began))
            assert session.call("m:f", argument).value == b"2"
        times["open, call, close"].append(1000 * (clock() - began))
    with sandbox.open(files, limits) as session:
        session.call("m:f", argument)
        for _ in range(10 * sessions):
            began = clock()
            session.call("m:f", argument)
            times["call"].append(1000 * (clock() - began))
        items = [b"1"] * (20 * sessions)
        began = clock()
        assert sum(reply.value == b"2" for reply in session.stream("m:f", items)) == len(items)
        times["streamed item"].append(1000 * (clock() - began) / len(items))
    sandbox.close()
    return times


# --- what is printed ------------------------------------------------------------------------------------------------


def show_rates(found: Mapping[str, Mapping[str, float]]) -> None:
    """Evaluations per second, and how many times that of the two without EvoGit."""
    names = list(dict.fromkeys(name for each in found.values() for name in each))
    print(f"{'evaluations per second':24}" + "".join(f"{kind:>22}" for kind in found))
    for name in names:
        print(f"{name:24}" + "".join(f"{cell(each, name):>22}" for each in found.values()))
    print("(in brackets: times as fast as `docker run`, and as a bare subprocess)")


def cell(each: Mapping[str, float], name: str) -> str:
    """A rate with its two ratios."""
    if name not in each:
        return "-"
    ratios = [f"{each[name] / each[other]:.2f}" if other in each else "-" for other in OTHERS]
    return f"{each[name]:.1f} ({', '.join(ratios)})"


def show_round_trips(found: Mapping[str, Mapping[str, float]]) -> None:
    """One row for each provider."""
    columns = ("open", "open, call, close", "call", "call p99", "streamed item")
    print(f"{'median ms':24}" + "".join(f"{column:>19}" for column in columns))
    for name, rows in found.items():
        print(f"{name:24}" + "".join(f"{rows[column]:>19.3f}" for column in columns))


def measure(rounds: int, seconds: float) -> dict[str, Any]:
    """Everything, as it is printed."""
    load = [os.getloadavg()[0]]
    trips = round_trips(rounds)
    show_round_trips(trips)
    found = {kind.name: asyncio.run(rates(kind, rounds, seconds)) for kind in kinds()}
    show_rates(found)
    load.append(os.getloadavg()[0])
    print("load of the machine before and after: {:.1f}, {:.1f}".format(*load))
    return {"rates": found, "round_trips": trips, "load": load}


def main() -> None:
    """Measure, print tables and a line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one short round, to see that all works")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the line of JSON to a file, too")
    options = parser.parse_args()
    result = measure(*((1, 0.3) if options.quick else (5, 2.0)))
    line = json.dumps(result)
    print(line)
    if options.json:
        options.json.write_text(line + "\n")


if __name__ == "__main__":
    main()
