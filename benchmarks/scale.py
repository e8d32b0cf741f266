"""What long runs cost: opening, refreshing, a move, one more candidate, commands, and Git itself beside them.

Run: `python benchmarks/scale.py [--candidates 1000 10000 100000 1000000] [--folder DIR] [--json FILE]`. Makes a run of
each size in DIR, as `reading.py` does, where a later call finds it again; a million candidates take a quarter of an
hour and five gigabytes. CPU time, in a process of its own for each part; of several calls the least, of many the
median.

- first: reading the journals, without a snapshot; its memory. open: with one, all that an engine needs decoded.
- refresh: taking in one more candidate that another process evaluated.
- a selector: one move after one more candidate; append: one more candidate with its evidence written as engines do.
- page: making the payload of the page; its size. Commands and `git log`: a process each.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from msgspec.structs import asdict
from reading import cpu_seconds, made

from evogit.core import Evaluated, Evaluation, Event, Proposed
from evogit.history.context import StoredRun
from evogit.page.payload import FollowedRun
from evogit.repository import Repository
from evogit.review import open_run
from evogit.selection.registry import open_selector

RUN = "circle_packing"

SELECTORS = ("elitist", "tournament", "weighted")

COMMANDS = ("status", "graph -n 20", "log -n 20", "show best")

TIMES = 100
"""How often what takes milliseconds is measured."""


def timed(work: Callable[[], object]) -> float:
    """Seconds of CPU that this thread takes for it."""
    begun = time.thread_time()
    work()
    return time.thread_time() - begun


def memory() -> float:
    """The most memory that this process had, in megabytes, less the files that are mapped into it now."""
    rows = [line.split() for line in Path("/proc/self/status").read_text().splitlines()]
    told = {row[0]: int(row[1]) / 1000 for row in rows if row[-1] == "kB"}
    return told["VmHWM:"] - told["RssFile:"]


def needed(run: StoredRun) -> None:
    """Have all that an engine needs decoded."""
    for each in fields(run.history):
        getattr(run.history, each.name)
    run.history.phylogeny.children(str(run.history.seed))


def _snapshot(repository: Path) -> Path:
    return repository / ".git" / "evogit" / "cache" / RUN


def opened(repository: Path) -> Iterator[tuple[str, float]]:
    """How long it takes to open a run, and its memory then; what cannot be measured after other things comes first."""
    gc.disable()
    found: list[StoredRun] = []
    there = _snapshot(repository).exists()
    spent = timed(lambda: found.append(open_run(Repository.open(repository), RUN)))
    spent += timed(lambda: needed(found[0])) if there else 0.0
    yield "open, s" if there else "first, s", spent
    yield "open, MB" if there else "first, MB", memory()


class Grower:
    """Lets a run grow by one candidate at a time."""

    def __init__(self, run: StoredRun) -> None:
        self.run = run
        self._rng = random.Random(len(run.history.phylogeny))

    def candidate(self) -> list[Event]:
        """The entries of one more, as good as its parent."""
        history, name = self.run.history, f"{self._rng.getrandbits(160):040x}"
        agent, parent = self._rng.choice(list(history.heads.items()))
        about: dict[str, Any] = {"engine": "host-1", "move": history.moves, "agent": agent, "operator": "mutation"}
        values = {"sum_radii": history.fitness(parent) or 1.0, "of_bound": 0.5}
        return [
            Proposed(candidate=name, tree=name, parents=(parent,), **about),
            Evaluated(candidate=name, evaluation=Evaluation(status="ok", metrics=values)),
        ]

    def write(self) -> None:
        """All that an engine writes of a candidate with evidence, but for its thinking."""
        repository, journal, [proposed, judged] = self.run.repository, self.run.journal, self.candidate()
        assert isinstance(proposed, Proposed)
        assert isinstance(judged, Evaluated)
        tree = repository.trees.write(None, {"packing.py": self._rng.randbytes(300).hex().encode()})
        about: dict[str, Any] = {"author": proposed.agent, "time": 1, "title": "t", "trailers": {}}
        commit = repository.commit(tree, proposed.parents, **about)
        journal.keep({}, commit)
        journal.append(Proposed(**{**_fields(proposed), "candidate": commit, "tree": tree}))
        evidence = journal.keep({"stdout": self._rng.randbytes(500).hex().encode()}, commit)
        journal.append(Evaluated(candidate=commit, evaluation=judged.evaluation, evidence=evidence))
        repository.move_branch(f"refs/heads/evogit/{RUN}/{proposed.agent}", commit)


def _fields(event: Any) -> dict[str, Any]:
    return asdict(event)


def lived(repository: Path) -> Iterator[tuple[str, float]]:
    """What life costs in an open run, in milliseconds."""
    gc.disable()
    run = open_run(Repository.open(repository), RUN)
    needed(run)
    gc.enable()
    gc.freeze()
    assert run.journal.position
    elsewhere = Repository.open(repository).journal(RUN, lambda entry: None, (), run.journal.position)
    grower, times = Grower(run), []
    for _ in range(TIMES):
        for event in grower.candidate():
            elsewhere.append(event)
        times.append(timed(run.journal.refresh))
    yield "refresh, ms", 1000 * statistics.median(times)
    for text in SELECTORS:
        yield from moved(run, grower, text)
    yield "append, ms", 1000 * statistics.median([timed(grower.write) for _ in range(TIMES)])


def moved(run: StoredRun, grower: Grower, text: str) -> Iterator[tuple[str, float]]:
    """What a move of a selector takes that knows the run."""
    selector, agents, times = open_selector(text, {}), list(run.history.heads), []
    for number in range(2 * TIMES):
        for event in grower.candidate():
            run.journal.append(event)
        who, rng = agents[number % len(agents)], random.Random(number)
        times.append(timed(lambda who=who, rng=rng: selector.next_move(run.history, who, rng)))  # type: ignore[misc]
    yield f"{text}, ms", 1000 * statistics.median(times[TIMES:])


def shown(repository: Path) -> Iterator[tuple[str, float]]:
    """What the page's server needs at first."""
    gc.disable()
    told: list[bytes] = []

    def payload() -> None:
        record = FollowedRun(Repository.open(repository), RUN).payload(read_only=False)
        told.append(gzip.compress(json.dumps(record, separators=(",", ":")).encode(), 6, mtime=0))

    yield "page, s", timed(payload)
    yield "page, MB sent", len(told[0]) / 1e6
    yield "page, MB", memory()


PARTS = {"opened": opened, "lived": lived, "shown": shown}


def apart(part: str, repository: Path) -> dict[str, float]:
    """The figures of a part, found out by a process that did nothing before."""
    call = [sys.executable, __file__, "--part", part, str(repository)]
    return dict(json.loads(subprocess.run(call, stdout=subprocess.PIPE, check=True).stdout))


def git_seconds(repository: Path, *arguments: str) -> float:
    """What one call of Git uses."""
    process = subprocess.Popen(["git", "-C", str(repository), *arguments], stdout=subprocess.DEVNULL)
    used = os.wait4(process.pid, 0)[2]
    return used.ru_utime + used.ru_stime


def measured(repository: Path, calls: int) -> dict[str, float]:
    """All figures of one run, which grows meanwhile."""
    figures = {} if _snapshot(repository).exists() else apart("opened", repository)
    found = [apart("opened", repository) for _ in range(calls)]
    figures |= {name: min(each[name] for each in found) for name in found[0]}
    figures |= {f"{each}, s": min(cpu_seconds(repository, each) for _ in range(calls)) for each in COMMANDS}
    figures |= apart("shown", repository)
    run = open_run(Repository.open(repository), RUN)
    best, journal = str(run.history.best), f"refs/evogit/{RUN}/journal/host"
    figures["git log best, s"] = git_seconds(repository, "log", "--format=%h %s", best)
    figures["git log journal, s"] = git_seconds(repository, "log", "--format=%h %s", journal)
    figures["git log -20 journal, s"] = git_seconds(repository, "log", "-20", "--format=%h %s", journal)
    return figures | apart("lived", repository)


def copied(source: Path, target: Path) -> Path:
    """A copy that may be written to; packs are shared, as they are never changed."""

    def copy(old: str, new: str) -> None:
        if old.endswith((".pack", ".idx")):
            os.link(old, new)
        else:
            shutil.copy2(old, new)

    shutil.copytree(source, target, copy_function=copy)
    return target


def main() -> None:
    """Make the runs, measure, print a table, and write JSON where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--candidates", type=int, nargs="+", default=[1000, 10_000, 100_000])
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--calls", type=int, default=3)
    parser.add_argument("--part", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        part, repository = options.part
        print(json.dumps(dict(PARTS[part](Path(repository)))))
        return
    costs: dict[int, dict[str, float]] = {}
    with tempfile.TemporaryDirectory(dir=options.folder) as passing:
        folder = options.folder or Path(passing)
        for size in options.candidates:
            costs[size] = measured(copied(made(folder, size), Path(passing) / f"{size}-grown"), options.calls)
            print(f"{size:,}: {costs[size]}", file=sys.stderr)
    print(f"{'':24}" + "".join(f"{size:>12,}" for size in costs))
    for name in dict.fromkeys(name for each in costs.values() for name in each):
        print(f"{name:24}" + "".join(f"{each.get(name, float('nan')):>12.3f}" for each in costs.values()))
    if options.json:
        options.json.write_text(json.dumps(costs, indent=1) + "\n")


if __name__ == "__main__":
    main()
