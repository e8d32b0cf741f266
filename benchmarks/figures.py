"""How each group of the figures of budget.py is measured, in one round of a process of its own."""

from __future__ import annotations

import asyncio
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import editors
import engine
import mutating
import reading
from budget import READING
from candidates import Warm, program, task_of
from meter import Meter, cpu_ms, cpu_ms_per_move, cpu_seconds

from evogit.adopt import find_task
from evogit.cli.commands.demo import TASK, settings_of
from evogit.evaluation.evaluator import Evaluator
from evogit.events import Entry, Stopped
from evogit.repository import Repository
from evogit.run import Run, Settings
from evogit.sandbox.interpreter import choose

ROOT = Path(__file__).parent.parent
SUITE = ROOT / ".venv" / "suite.seconds"
"""Where scripts/test leaves how long it took."""
FIRST = 20
"""Candidates after which a run is under way."""
WINDOW = 100
"""Candidates whose cost is looked at, early and late, in a long run."""
EVALUATIONS = 200
"""Of editors."""
READ = 2000
"""Candidates of the run that commands look at."""
JOBS = 2
"""Evaluations at a time."""
MEMORY = Path("/dev/shm")
"""Where bare processes have their files, since sandboxes have theirs in memory too."""
SECONDS = 1.5
"""How long evaluations are counted."""


def window_of(candidates: int) -> int:
    """Candidates at the beginning and at the end of a run whose cost is looked at."""
    return min(WINDOW, candidates // 4)


@contextmanager
def folder() -> Iterator[Path]:
    """A folder for a while; budget.py removes them all once everything is measured.

    Where thousands of files were removed just now, ext4 without a journal makes new ones up to ten times slower.
    """
    yield Path(tempfile.mkdtemp())


# --- runs ---------------------------------------------------------------------------------------------------------


def null_run(where: Path, selector: str, candidates: int, seed: int) -> Meter:
    """A run in which neither agents nor evaluations take time; four readings, around an early and a late window."""
    window = window_of(candidates)
    meter = Meter([FIRST, FIRST + window, candidates - window, candidates])
    settings = Settings(evaluations=candidates, selector=selector, seed=seed)
    repository, task = engine.Unpacked.create(where / "repository"), engine.null_task(where / "task")
    agents = [engine.NullAgent() for _ in range(4)]
    run = Run(repository, task, "null", settings, meter, agents=agents, backend=engine.NullExecutor())
    asyncio.run(run.evolve())
    return meter


def engine_alone(selector: str, candidates: int, seed: int) -> dict[str, float]:
    """What the engine costs beside agents and evaluations."""
    with folder() as where:
        meter = null_run(where, selector, candidates, seed)
    first, last = cpu_ms(*meter.readings[:2]), cpu_ms(*meter.readings[2:])
    return {
        f"{selector}.first": first,
        f"{selector}.last": last,
        f"{selector}.ratio": last / first,
        f"{selector}.wall": meter.wall_ms(*meter.readings[2:]),
        f"{selector}.gits": meter.readings[-1].gits / candidates,
        f"{selector}.moves": meter.readings[-1].moves / candidates,
    }


def elitist(candidates: int, seed: int) -> dict[str, float]:
    """The engine with the default selector."""
    return engine_alone("elitist", candidates, seed)


def sequential(candidates: int, seed: int) -> dict[str, float]:
    """The engine with the selector that costs least."""
    return engine_alone("sequential", candidates, seed)


def write(candidates: int, seed: int) -> dict[str, float]:
    """What it costs to store a candidate and its evaluation."""
    with folder() as where:
        before = cpu_seconds()
        walls = engine.write_path(where / "writes", candidates)
        used = cpu_seconds() - before
    return {"write.cpu": 1000 * used / candidates, "write.wall": statistics.median(walls)}


def mutator(candidates: int, seed: int) -> dict[str, float]:
    """What a mutator's move costs beside the evaluation."""
    with folder() as where:
        meter = mutating.work(where, candidates=candidates, window=window_of(candidates), seed=seed)
    first, last = cpu_ms_per_move(*meter.readings[:2]), cpu_ms_per_move(*meter.readings[2:4])
    barren = 100 * (1 - meter.count("new") / meter.outcomes.total())
    return {"mutator.first": first, "mutator.last": last, "mutator.ratio": last / first, "mutator.barren": barren}


def some_editors(number: int, candidates: int, seed: int) -> dict[str, float]:
    """What editors cost, and how many of their attempts came to nothing."""
    with folder() as where:
        meter = editors.work(where, editors=number, seed=seed, evaluations=EVALUATIONS)
    evaluated = meter.readings[-1].evaluated
    return {
        f"editors{number}.cpu": editors.own_cpu_ms(meter),
        f"editors{number}.supervisors": editors.supervisors_cpu_ms(meter),
        f"editors{number}.own": 1000 * meter.candidates_cpu / evaluated,
        f"editors{number}.duplicates": 100 * meter.count("duplicate") / meter.outcomes.total(),
        f"editors{number}.tokens": meter.tokens / evaluated,
    }


def editors2(candidates: int, seed: int) -> dict[str, float]:
    """Two editors at once, as other systems were measured with."""
    return some_editors(2, candidates, seed)


def editors4(candidates: int, seed: int) -> dict[str, float]:
    """Four editors, which is what `--model` makes."""
    return some_editors(4, candidates, seed)


def proposals(candidates: int, seed: int) -> dict[str, float]:
    """How many evaluations as many proposals are good for."""
    number = EVALUATIONS
    with folder() as where:
        meter = editors.work(where, editors=4, seed=seed, evaluations=number + 1, proposals=number)
    return {"proposals.evaluated": meter.readings[-1].evaluated - 1}


class MeterToTheEnd(Meter):
    """Reads the clocks at the end of a run, while its evaluator processes are still there."""

    def entry(self, entry: Entry) -> None:
        """Take a fact of the run in."""
        super().entry(entry)
        if isinstance(entry.event, Stopped):
            self.read()


def demo(candidates: int, seed: int) -> dict[str, float]:
    """The demo: what `make demo` does in its minute, and what that costs."""
    settings, meter, (load, *_) = settings_of(seed), MeterToTheEnd(), os.getloadavg()
    meter.read()
    with folder() as where:
        run = Run(Repository.create(where / "repository"), find_task(TASK), "demo", settings, meter)
        asyncio.run(run.evolve())
    return {
        "demo.load": load,
        "demo.evaluated": meter.readings[-1].evaluated,
        "demo.busy": 100 * meter.busy / (60 * settings.jobs),
        "demo.duplicates": meter.count("duplicate"),
        "demo.failed": meter.count("failed"),
        "demo.barren": 100 * (1 - meter.count("new") / meter.outcomes.total()),
        "demo.cpu": editors.own_cpu_ms(meter),
        "demo.supervisors": editors.supervisors_cpu_ms(meter),
        "demo.own": 1000 * meter.candidates_cpu / meter.readings[-1].evaluated,
    }


# --- parts --------------------------------------------------------------------------------------------------------


def sandboxes(candidates: int, seed: int) -> dict[str, float]:
    """Evaluations per second in warm sandboxes, and of processes without any, one after the other."""
    with folder() as where:
        return asyncio.run(_sandboxes(where, SECONDS))


async def _sandboxes(where: Path, seconds: float) -> dict[str, float]:
    async with Evaluator(task_of(where / "task"), provider="bubblewrap", jobs=JOBS) as evaluator:
        warm = Warm(evaluator)
        _, done = await rate(warm.evaluate, 0.0, 1)
        each, _ = await rate(warm.evaluate, seconds, 1 + JOBS * done)
        other, _ = await rate(lambda number: asyncio.to_thread(run_bare, number), seconds, 1)
    return {"sandbox.rate": each, "sandbox.ratio": each / other}


def run_bare(number: int) -> None:
    """Run a candidate as a process without a sandbox: write its file, run it, remove it."""
    python, _ = choose(privileged=True)
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as place:
        Path(place, "program.py").write_bytes(program(number))
        done = subprocess.run([python, "program.py"], cwd=place, capture_output=True, text=True, check=False)
    assert done.stdout == f"{499500 + number}\n", (done.stdout, done.stderr)


async def rate(evaluate: Callable[[int], Awaitable[None]], seconds: float, first: int) -> tuple[float, int]:
    """Return the evaluations per second of lanes that go on for so long, and how many there were."""

    async def lane(number: int) -> tuple[float, int]:
        began, done = time.perf_counter(), 0
        while not done or time.perf_counter() < began + seconds:
            await evaluate(first + JOBS * done + number)
            done += 1
        return done / (time.perf_counter() - began), done

    lanes = await asyncio.gather(*map(lane, range(JOBS)))
    return sum(each for each, _ in lanes), sum(done for _, done in lanes)


def command_seconds(where: Path, *command: str) -> float:
    """CPU of a command in a folder, the least of three times."""

    def once() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, cwd=where, stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    return min(once() for _ in range(3))


def starts(candidates: int, seed: int) -> dict[str, float]:
    """What commands cost before they do anything, beside Python itself."""
    evogit = str(Path(sys.executable).with_name("evogit"))
    with folder() as where:
        null_run(where, "sequential", 30, seed)
        figures = {
            "start.bare": command_seconds(where, sys.executable, "-c", "pass"),
            "start.help": command_seconds(where, evogit, "--help"),
            "start.version": command_seconds(where, evogit, "--version"),
            "start.run": command_seconds(where, sys.executable, "-c", "import evogit.cli.commands.run"),
            "start.status": command_seconds(where, evogit, "-C", str(where / "repository"), "status"),
        }
    ratios = {f"start.{name}_ratio": figures[f"start.{name}"] / figures["start.bare"] for name in ("help", "status")}
    return figures | ratios


def read(candidates: int, seed: int) -> dict[str, float]:
    """What commands cost that look at a run, once an earlier one has left what it found."""
    with folder() as where:
        run = reading.made(where, READ)
        reading.cpu_seconds(run, "status")
        return {f"reading.{command}": reading.cpu_seconds(run, command) for command in READING}


def suite(candidates: int, seed: int) -> dict[str, float]:
    """How long the last whole run of the tests took, if there was one in this checkout."""
    return {"suite.seconds": float(SUITE.read_text())} if SUITE.exists() else {}


GROUPS: Mapping[str, Callable[[int, int], dict[str, float]]] = {
    "elitist": elitist,
    "sequential": sequential,
    "write": write,
    "mutator": mutator,
    "editors2": editors2,
    "editors4": editors4,
    "proposals": proposals,
    "sandboxes": sandboxes,
    "starts": starts,
    "reading": read,
    "demo": demo,
    "suite": suite,
}
"""Name -> measures a group in one round: how many candidates the longest run has, and the seed of its runs."""
