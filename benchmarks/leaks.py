"""What evaluations leave behind: memory, processes, files, containers, mounts, control groups, network namespaces."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ctypes
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from candidates import Warm, task_of
from meter import FORKS, command_line

from evogit.evaluation.evaluator import Evaluator
from evogit.sandbox.docker.worker import MARK, PROCESS

JOBS = 2
PROVIDERS = ("docker", "bubblewrap")
SET_CHILD_SUBREAPER = 36  # of prctl(2)
SETTLE = 30.0
"""Seconds that the kernel and the daemon have to remove what is not used any more."""


def leaks(evaluations: int) -> dict[str, Any]:
    """Count everything before, after a tenth, at the end and after the end of so many evaluations; prints a table.

    Orphans become children of this process, so that none is missed; mounts, control groups and network namespaces are
    those of the whole machine.
    """
    ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    found: dict[str, Any] = {"evaluations": evaluations}
    for name in PROVIDERS:
        with tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as task:
            os.environ["TMPDIR"] = tempfile.tempdir = home
            try:
                found[name] = asyncio.run(watch(name, Path(task), Path(home), evaluations))
            finally:
                del os.environ["TMPDIR"]
                tempfile.tempdir = None
        show(name, found[name])
    return found


async def watch(name: str, folder: Path, home: Path, evaluations: int) -> dict[str, dict[str, float]]:
    """Evaluate one-file candidates, two at a time."""
    task = task_of(folder / "leaks")
    async with Evaluator(task, provider=name, jobs=1):
        pass  # what evaluators are forked from is there now, and stays
    points = {"before": census(home)}
    async with Evaluator(task, provider=name, jobs=JOBS) as evaluator:
        warm, numbers = Warm(evaluator), iter(range(evaluations))

        async def lane(until: int) -> None:
            for number in numbers:
                await warm.evaluate(number)
                if number >= until:
                    break

        for point, until in (("after a tenth", evaluations // 10), ("at the end", evaluations)):
            await asyncio.gather(*(lane(until) for _ in range(JOBS)))
            while len(family([]).judges) < JOBS:  # processes start only once evaluations wait for them
                await asyncio.gather(*(warm.evaluate(number) for number in range(-JOBS, 0)))
            await asyncio.sleep(1)  # the last sessions are cleared away meanwhile
            points[point] = census(home)
    points["afterwards"] = settled(home, points["before"])
    return points


def settled(home: Path, before: dict[str, float]) -> dict[str, float]:
    """The least that is left, until all is as it was: what was left stays, what neighbours have comes and goes."""
    until, least = time.monotonic() + SETTLE, census(home)
    while time.monotonic() < until and any(least[name] > before[name] for name in least if not name.endswith("MB")):
        time.sleep(1)
        now = census(home)
        least = {name: min(amount, now[name]) for name, amount in least.items()}
    return least


def census(home: Path) -> dict[str, float]:
    """Everything that could grow."""
    containers = own_containers()
    servers, judges, workers = family(containers)
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:  # orphans that have ended
            pass
    return {
        "engine MB": memory([os.getpid()]),
        "engine fds": fds([os.getpid(), *servers]),
        "judges MB": memory(judges),
        "judges fds": fds(judges),
        "workers MB": memory(workers),
        "processes": len(judges) + len(workers),
        "containers": len(containers),
        "temporary files": sum(1 for _ in home.rglob("*")),
        "machine: mounts": len(Path("/proc/self/mountinfo").read_text().splitlines()),
        "machine: control groups": sum(1 for _ in os.walk("/sys/fs/cgroup")),
        "machine: network namespaces": network_namespaces(),
    }


# --- whose is what --------------------------------------------------------------------------------------------------


def parents() -> dict[int, int]:
    """Process -> its parent, of the whole machine."""
    found = {}
    for process in Path("/proc").iterdir():  # a glob would stumble over processes that end meanwhile
        with contextlib.suppress(OSError, ValueError):
            found[int(process.name)] = int((process / "stat").read_text().rpartition(")")[2].split()[1])
    return found


def below(tops: Iterable[int], of: dict[int, int]) -> Iterator[int]:
    """All processes below some."""
    todo = list(tops)
    while todo:
        top = todo.pop()
        children = [pid for pid, parent in of.items() if parent == top]
        yield from children
        todo += children


def own_containers() -> list[int]:
    """The first processes of containers of this process and of those that it started."""
    told = subprocess.run(
        ["docker", "ps", "-aq", "--filter", f"label={MARK}"], capture_output=True, text=True, check=True
    )
    ids = told.stdout.split()
    told = subprocess.run(["docker", "inspect", *ids], capture_output=True, text=True, check=False)
    own = {os.getpid(), *below([os.getpid()], parents())}
    return [
        each["State"]["Pid"]
        for each in json.loads(told.stdout or "[]")
        if int(each["Config"]["Labels"][PROCESS]) in own
    ]


class Family(NamedTuple):
    """Our processes: what evaluators are forked from, evaluators, and what carries, is in and is below containers."""

    servers: list[int]
    judges: list[int]
    workers: list[int]


def family(containers: list[int]) -> Family:
    """All of ours that there are."""
    of = parents()
    children = [pid for pid, parent in of.items() if parent == os.getpid()]
    servers = [pid for pid in children if FORKS in command_line(pid)]
    judges = [pid for pid, parent in of.items() if parent in servers or (pid in children and pid not in servers)]
    carriers = [of[pid] for pid in containers if pid in of]
    return Family(servers, judges, [*below(judges, of), *carriers, *below(carriers, of)])


def memory(pids: Iterable[int]) -> float:
    """Megabytes, by proportional set size."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total * 1024 / 1e6


def fds(pids: Iterable[int]) -> int:
    """Open files."""
    return sum(len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in pids)


def network_namespaces() -> int:
    """Those that the kernel has memory for; 0 where only root may know."""
    try:
        lines = Path("/proc/slabinfo").read_text().splitlines()
    except PermissionError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("net_namespace")), 0)


def show(name: str, points: dict[str, dict[str, float]]) -> None:
    """A row for everything that was counted."""
    print(f"{name:30}" + "".join(f"{point:>16}" for point in points))
    for what in points["before"]:
        print(f"{what:30}" + "".join(f"{each[what]:>16.6g}" for each in points.values()))


def main() -> None:
    """Print what N evaluations leave behind, and a line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("evaluations", type=int, metavar="N")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the line of JSON to a file, too")
    options = parser.parse_args()
    line = json.dumps(leaks(options.evaluations))
    print(line)
    if options.json:
        options.json.write_text(line + "\n")


if __name__ == "__main__":
    main()
