"""How many agents that wait for a model one process bears: the rate of calls against the ideal one.

Run: `python benchmarks/agents.py [--agents 200] [--latency 2] [--seconds 30] [--json FILE] [--profile FILE]`. The
endpoint is an HTTP server in a process of its own that answers every question after the latency with an edit that fits;
the evaluator answers at once. So agents / latency is the ideal number of calls a second, and what is missing is the
engine's: briefs, HTTP, edits, Git. The target is 90 % of it with 200 agents and 2 s, in less than 500 MB.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

import briefs  # noqa: E402  a neighbour
from engine import NullExecutor, null_task  # noqa: E402  another one

from evogit.config.run_settings import AgentSpec  # noqa: E402
from evogit.config.user_settings import ModelTable, UserSettings  # noqa: E402
from evogit.core import Entry, Evaluated, Spent  # noqa: E402
from evogit.llm.registry import OpenModels  # noqa: E402
from evogit.repository import Repository  # noqa: E402
from evogit.run import Run, Settings  # noqa: E402
from tests.openai_server import Behaviour, Request, Server, reply  # noqa: E402

WARM = 2
"""Latencies after which the rate is measured."""


async def serve(latency: float) -> None:
    """Answer every question with a change of one line, for ever."""
    rng = random.Random(1)

    def edit(request: Request) -> Behaviour:
        server.requests.clear()
        line = rng.randrange(1, 100)
        block = (
            f"<<<<<<< SEARCH program.py\nx = {line}\n=======\nx = {line}\ny = {rng.getrandbits(60)}\n>>>>>>> REPLACE"
        )
        return reply(f"A number may help.\n\nTITLE: a number after {line}\n\n{block}\n", latency=latency)

    server = Server([edit])
    async with await server.start() as running:
        print(server.url, flush=True)
        await running.serve_forever()


class Counter:
    """Notes when calls and evaluations were part of the history, and the CPU seconds until each call."""

    def __init__(self) -> None:
        self.calls: list[float] = []
        self.evaluations: list[float] = []
        self.cpu: list[float] = []

    def entry(self, entry: Entry) -> None:
        """Note its time."""
        if isinstance(entry.event, Spent):
            self.calls.append(time.perf_counter())
            self.cpu.append(sum(os.times()[:4]))
        elif isinstance(entry.event, Evaluated):
            self.evaluations.append(time.perf_counter())

    def activity(self, agent: str, doing: str) -> None:
        """Of no interest here."""


def rate(times: list[float], begin: float, end: float) -> float:
    """Events a second between two moments."""
    return sum(begin <= each < end for each in times) / (end - begin)


def measure(folder: Path, url: str, agents: int, latency: float, seconds: float) -> dict[str, float]:
    """Let the agents work and see what became of it."""
    user = UserSettings(models={"slow": ModelTable(base_url=url)})
    models, counter = OpenModels(user, random.Random(2)), Counter()
    settings = Settings(population=(AgentSpec("editor", "slow", agents),), minutes=(seconds + WARM * latency) / 60)
    run = Run(
        Repository.create(folder / "repository"),
        null_task(folder / "task"),
        "many",
        settings,
        counter,
        models=models.get,
        backend=NullExecutor(),
    )
    briefs.evolve(run, models)
    begin = counter.evaluations[0] + WARM * latency
    end = begin + seconds - latency  # calls in flight at the end are finished, but none follows them
    steady = [cpu for at, cpu in zip(counter.calls, counter.cpu, strict=True) if begin <= at < end]
    calls = rate(counter.calls, begin, end)
    return {
        "ideal_calls_per_s": agents / latency,
        "calls_per_s": round(calls, 1),
        "share": round(calls * latency / agents, 3),
        "candidates_per_s": round(rate(counter.evaluations, begin, end), 1),
        "failed_proposals": run.history.counts.failed_proposals,
        "cpu_ms_per_call": round(1000 * (steady[-1] - steady[0]) / (len(steady) - 1), 2),
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def main() -> None:
    """Measure, print a table, and write JSON where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, default=200)
    parser.add_argument("--latency", type=float, default=2.0)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--profile", type=Path, help="write what the time went to, for pstats")
    parser.add_argument("--table", choices=briefs.TABLES, help="instead: what briefs cost, see briefs.py")
    parser.add_argument("--serve", action="store_true", help="be the endpoint")
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve(options.latency))
        return
    if options.table:
        rows = briefs.TABLES[options.table]()
        briefs.show(rows)
        if options.json:
            options.json.write_text(json.dumps(rows, indent=1) + "\n")
        return
    profile = cProfile.Profile(time.process_time)
    command = [sys.executable, __file__, "--serve", "--latency", str(options.latency)]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as endpoint,
        tempfile.TemporaryDirectory() as folder,
    ):
        assert endpoint.stdout
        url = endpoint.stdout.readline().strip()
        if options.profile:
            profile.enable()
        result = measure(Path(folder), url, options.agents, options.latency, options.seconds)
        profile.disable()
        endpoint.terminate()
    if options.profile:
        profile.dump_stats(options.profile)
    for name, value in result.items():
        print(f"{name.replace('_', ' '):<20} {value:>8}")
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
