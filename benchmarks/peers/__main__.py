"""EvoGit beside OpenEvolve, ShinkaEvolve, SkyDiscover, GEPA, and no engine at all, on the same work.

    python benchmarks/peers [--quick] [--systems NAME ...] [--tasks NAME ...] [--seeds N] [--examples FOLDER]

All candidates of all systems are scored by one gate (`gate.py`) with one budget, all questions are answered by one
synthetic model (`model.py`). Peers are installed from the package index, each into an environment of its own. FOLDER
(or PEERS_EXAMPLES) has the repositories of the peers as `openevolve/examples` and so on; without it their examples are
left out. Outcomes are appended to --results; the same command does only what is missing there, `--table` nothing more.
`--quick` takes about eight minutes on two idle cores, all of it up to six hours.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from environments import Environment, environment
from model import KINDS
from results import Results
from running import Bench, Plan
from serving import Served
from systems import SYSTEMS, System
from table import tables
from trials import trials

from tasks import PACKAGES, Task, examples, landscapes

QUICK = ("thermostat", "gears", "sine_approx")
QUICK_SYSTEMS = [name for name in SYSTEMS if name not in ("shinka-2", "skydiscover-ada", "openevolve-2")]


def main() -> int:
    """Measure what is missing, and print the tables."""
    given = arguments()
    results = Results(given.results)
    if not given.table:
        scratch = tempfile.TemporaryDirectory(dir=given.scratch)
        with scratch as folder, Served("gate.py") as gate, Served("model.py") as model:
            measure(Bench(gate, model, environments(given), Path(folder)), given, results)
    print(tables(results))
    return 0


def arguments() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two seeds, 100 evaluations, three tasks, nine systems")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, metavar="NAME", help=", ".join(SYSTEMS))
    parser.add_argument("--tasks", nargs="+", metavar="NAME")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS, help="of models")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--budget", type=int, help="evaluations; 200, quick 100")
    parser.add_argument("--examples", type=Path, default=os.environ.get("PEERS_EXAMPLES"), metavar="FOLDER")
    parser.add_argument("--environments", type=Path, default=Path(tempfile.gettempdir()) / "evogit-peers")
    parser.add_argument("--results", type=Path, default=Path("peers.jsonl"), metavar="FILE")
    parser.add_argument("--scratch", type=Path, help="where runs lie until they are measured")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="runs at a time")
    parser.add_argument("--hours", type=float, default=6.0, help="no run is begun after this time")
    parser.add_argument("--trials", action=argparse.BooleanOptionalAction, default=True, help="kill, repeat, forge")
    parser.add_argument("--table", action="store_true", help="only print what was measured before")
    given = parser.parse_args()
    given.seeds = given.seeds or (2 if given.quick else 20)
    given.budget = given.budget or (100 if given.quick else 200)
    given.systems = [SYSTEMS[name] for name in given.systems or (QUICK_SYSTEMS if given.quick else SYSTEMS)]
    given.tasks = chosen(given)
    return given


def chosen(given: argparse.Namespace) -> list[Task]:
    """The tasks, and a word on those that are not there."""
    every = {task.name: task for task in [*landscapes(), *examples(given.examples)]}
    if len(every) == len(landscapes()):
        print("no examples of the peers: --examples FOLDER says where their repositories are", file=sys.stderr)
    wanted = given.tasks or (QUICK if given.quick else list(every))
    for name in wanted:
        if name not in every:
            print(f"{name} is left out: it is not there", file=sys.stderr)
    return [every[name] for name in wanted if name in every]


def environments(given: argparse.Namespace) -> dict[tuple[str, ...], Environment]:
    """Those that the systems need, and one for the examples' evaluators; what cannot be installed is left out."""
    wanted = {system.packages for system in given.systems} | {()}
    if any(task.is_example for task in given.tasks):
        wanted.add(PACKAGES)
    found = {packages: environment(packages, given.environments) for packages in sorted(wanted)}
    for packages, each in found.items():
        if each.problem:
            print(f"{' '.join(packages)}: {each.problem}", file=sys.stderr)
    return {packages: each for packages, each in found.items() if not each.problem}


def plans(systems: Sequence[System], given: argparse.Namespace) -> Iterator[Plan]:
    """All runs, seed by seed, so that what there is time for is balanced; examples say nothing that can be read."""
    for seed in range(given.seeds):
        for task in given.tasks:
            for kind in given.kinds:
                if kind == "reading" and task.is_example:
                    continue
                for system in systems:
                    if seed < max(1, system.share * given.seeds):
                        yield Plan(system, task, kind, seed, given.budget)


def measure(bench: Bench, given: argparse.Namespace, results: Results) -> None:
    """All that is missing, as long as there is time."""
    ends = time.monotonic() + 3600 * given.hours
    systems = [system for system in given.systems if system.packages in bench.environments]

    def run(plan: Plan) -> None:
        if plan.name in results.names or time.monotonic() > ends:
            return
        outcome = bench.run(plan)
        results.add(plan.name, outcome)
        print(f"{plan.name}: {len(outcome.scores)} evaluated, {outcome.wall:.0f} s {outcome.note}", file=sys.stderr)

    with ThreadPoolExecutor(given.jobs) as pool:
        list(pool.map(run, plans(systems, given)))
        if given.trials:
            list(pool.map(lambda system: trials(bench, system, landscapes()[0], given.budget, results), systems))


if __name__ == "__main__":
    sys.exit(main())
