"""`evogit bench`: methods compared on tasks at equal cost, so that evolution has to earn its own."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import click
from msgspec.structs import replace
from rich.text import Text

from evogit.adopt import find_task
from evogit.bench.bench import Bench
from evogit.bench.comparison import Findings, findings
from evogit.bench.methods import CONTROLS, DEFAULT, Method, methods
from evogit.bench.outcome import BenchRun, save
from evogit.bench.paid import BenchLimits, Paid
from evogit.bench.report import markdown, record, tables
from evogit.bench.worker_run import BenchTask
from evogit.bench.workers import Order
from evogit.cli.consent import confirm_costs
from evogit.cli.options.agents import AgentOptions, AgentSetup, population, resolve_agents, with_agents
from evogit.cli.options.shared import TASK, OutputPath, sandbox_option, with_terminal
from evogit.cli.terminal import Terminal, table
from evogit.cli.text import clock, count, escape
from evogit.config import Task
from evogit.config.run_settings import AgentSpec, Settings
from evogit.config.user_settings import load_user_settings
from evogit.core import UsageError
from evogit.history import History
from evogit.review import EarlierStarts
from evogit.selection.map_elites import traits_of
from evogit.selection.registry import open_selector

ALL = ",".join([DEFAULT, *(method.name for method in CONTROLS if not method.kind)])
FOLDER = OutputPath(file_okay=False)


@click.command()
@click.argument("task", type=TASK, nargs=-1, required=True)
@click.option("--selector", "selectors", multiple=True, metavar="SPEC", help="A selector as a further method.")
@click.option(
    "--method",
    "--methods",
    "named",
    multiple=True,
    metavar="NAME,...|NAME=SPEC",
    help=f"Methods to compare (default: {ALL}; also plain-loop, with --model); or your own: selector, --agent ..., or "
    "both.",
)
@click.option("--evaluations", type=click.IntRange(2), default=200, metavar="N", help="Evaluations per run (200).")
@click.option("-n", "seeds", type=click.IntRange(1), default=10, metavar="K", help="Runs per method; default: 10.")
@click.option("--split", default="train", show_default=True, metavar="NAME", help="The split that runs are ranked on.")
@click.option("-j", "--jobs", type=click.IntRange(1), metavar="N", help="Runs at a time; default: one per core.")
@click.option(
    "-o", "--output", "out", type=FOLDER, default=Path("evogit-bench"), metavar="DIR", help="For the results."
)
@click.option("--calls-each", type=click.IntRange(1), metavar="N", help="Calls of models that each run may make.")
@click.option("--proposals", type=int, metavar="N", help="Stop when agents that ask models made this many, in all.")
@with_agents
@sandbox_option
@with_terminal
def bench(
    terminal: Terminal,
    task: tuple[str, ...],
    named: tuple[str, ...],
    selectors: tuple[str, ...],
    jobs: int | None,
    out: Path,
    asked: AgentOptions,
    **chosen: Any,
) -> None:
    """Compare methods on each TASK with equal numbers of evaluations, seed by seed.

    What is done is kept in DIR: the same command again does only what is missing or has changed. Where agents ask
    models, limits are those of all runs together, and runs that are cut off go on.
    """
    own, lists = [text for text in named if "=" in text], [text for text in named if "=" not in text]
    compared = methods(filter(None, ",".join(lists or [ALL]).split(",")), selectors, own)
    tasks = [_comparable(find_task(name), compared, chosen["split"]) for name in task]
    if twice := {each.name for each in tasks if [other.name for other in tasks].count(each.name) > 1}:
        raise UsageError(f"expected tasks of different names, got {' and '.join(twice)} more than once")
    usual, compared = _populations(asked, compared)
    variables = {name for each in tasks for name in each.variables}
    setup = _setup(asked, [each.population(usual) for each in compared], chosen, variables)
    for each in tasks:
        each.check_trust(chosen["sandbox"], ", ".join(setup.reached))
    common = {name: chosen[name] for name in ("evaluations", "split", "sandbox")}
    benches = [
        Bench(
            bench_task=BenchTask(task=each, agents=usual, calls=chosen["calls_each"], **common),
            methods=compared,
            seeds=range(chosen["seeds"]),
            folder=out / "runs" / each.name,
        )
        for each in tasks
    ]
    jobs = jobs or os.cpu_count() or 1
    if setup.asking:
        found = [_paid(terminal, benches, setup, jobs, yes=asked.yes)]
    else:
        found = [findings(each, race(terminal, each, jobs)) for each in benches]
    _report(terminal, [each for each in found if each], out)


def _comparable(task: Task, compared: Sequence[Method], split: str) -> Task:
    """Return a task on which these methods can be compared. Raise UsageError if there is none."""
    task.check_split(split)
    for method in compared:
        open_selector(method.selector, traits_of(task))
    if task.pairwise:
        raise UsageError(f"{task.name} is evaluated by comparing candidates, so runs of it have no values to compare")
    return replace(task, review="")  # methods are compared by what is measured, for equal budgets


def _populations(asked: AgentOptions, compared: Sequence[Method]) -> tuple[tuple[AgentSpec, ...], tuple[Method, ...]]:
    """The agents of methods that name none, and the methods with the common model where their agents name none."""
    user, nothing = load_user_settings(os.environ), EarlierStarts()
    usual = population(replace(asked, record=None, replay=None), nothing, user)
    told = []
    for method in compared:
        nameless = any(spec.asks and not spec.model for spec in method.agents)
        own = AgentOptions(agent=method.agents, model=asked.model if nameless else "")
        told.append(replace(method, agents=population(own, nothing, user) if method.agents else ()))
    return usual, tuple(told)


def _setup(
    asked: AgentOptions,
    populations: Sequence[tuple[AgentSpec, ...]],
    chosen: dict[str, Any],
    variables: Collection[str],
) -> AgentSetup:
    """All agents of any run, with the limits on all runs together."""
    everyone = tuple(dict.fromkeys(spec for each in populations for spec in each))
    limits = {name: chosen[name] for name in Settings().ceilings}
    setup = resolve_agents(
        replace(asked, agent=everyone, agents=None, model=""),
        Settings(sandbox=chosen["sandbox"], **limits),
        History(""),
        variables=variables,
    )
    if any((program := setup.programs.find(spec.kind)) and not program.metered for spec in everyone):
        raise UsageError('expected programs without auth = "mount", as their use of models is not counted')
    if limits["proposals"] is not None and not setup.asking:
        raise UsageError("--proposals limits what models cost, and no agent asks one: --model NAME")
    return setup


def _paid(terminal: Terminal, benches: Sequence[Bench], setup: AgentSetup, jobs: int, *, yes: bool) -> Findings | None:
    """The bench with agents that ask models, after a person agreed to what the runs that are missing cost."""
    if len(benches) > 1:
        raise UsageError(f"expected one TASK where agents ask models, since you agree task by task, got {len(benches)}")
    (bench,) = benches
    asking = [order for order in bench.missing(bench.done()) if bench.asks(order[0])]
    limits = setup.settings.ceilings
    agreed: tuple[str, ...] = ()
    if asking:
        each, calls = bench.bench_task.calls, setup.settings.calls
        calls = min(calls or len(asking) * each, len(asking) * each) if each else calls
        whole = replace(setup.settings, evaluations=len(asking) * bench.bench_task.evaluations, calls=calls)
        agreed = confirm_costs(
            terminal, replace(setup, settings=whole), bench.bench_task.task, None, History(""), yes=yes
        ).agreed
    allowance = BenchLimits(models=setup.models, programs=setup.programs, limits=limits, agreed=agreed)
    progress = BenchProgress(terminal, bench)
    with progress.shown():
        asyncio.run(race_paid(progress, Paid(bench, allowance, jobs=jobs)))
    if missing := bench.missing(progress.done):
        terminal.note(f"a limit is reached with {count(len(missing), 'run')} missing; a higher one goes on", "yellow")
    return findings(bench, progress.done)


def _report(terminal: Terminal, by_task: Sequence[Findings], out: Path) -> None:
    if not by_task:
        terminal.note("no seed has the runs of all methods yet, so there is nothing to compare")
        if terminal.json:
            terminal.data(record([]))
        return
    data = record(by_task)
    save(out / "bench.json", json.dumps(data, allow_nan=False) + "\n")
    command = shlex.join(["evogit", *sys.argv[1:]])
    save(out / "bench.md", markdown(by_task, command))
    if terminal.json:
        terminal.data(data)
    else:
        lines = []
        for each in (each for one in by_task for each in tables(one)):
            rows = [[escape(cell) for cell in row] for row in each.rows]
            titles = [Text(escape(line), "bold") for line in each.title.splitlines()]
            lines += [*titles, *table(rows, each.align), Text()]
        wide = terminal.width and max(line.cell_len for line in lines) > terminal.width
        terminal.show(lines)
        if wide:
            terminal.note(f"cut to {terminal.width} columns; all of it is in {out}/bench.md", "dim")
    terminal.note(f"written to {out}/: bench.md, bench.json", "dim")


MAX_PROGRESS_LINES = 10


class BenchProgress:
    """Reports how far the runs of one bench are."""

    def __init__(self, terminal: Terminal, bench: Bench) -> None:
        self._terminal = terminal
        self._bench = bench
        self.done = bench.done()
        self._methods = {method.name: method for method in bench.methods}
        self._began = time.monotonic()
        self._before = len(self.done)
        self._every = max(len(bench.missing(self.done)) // MAX_PROGRESS_LINES, 1)

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Report what was done before, and afterwards what was done now."""
        if self.done:
            self._note(f"{count(len(self.done), 'run')} of {len(self._bench.orders)} done before")
        if stale := self._bench.stale(self.done):
            self._note(f"{count(stale, 'run')} of another EvoGit, task or settings made again")
        try:
            yield
        finally:
            left = len(self._bench.missing(self.done))
            if made := len(self.done) - self._before:
                rest = f", {left:,} left; the same command continues" if left else ""
                self._note(f"{count(made, 'run')} in {clock(time.monotonic() - self._began)}{rest}", "dim")

    def take(self, outcome: BenchRun) -> None:
        """Count one more run."""
        self.done[self._methods[outcome.method], outcome.seed] = outcome
        left, made = len(self._bench.missing(self.done)), len(self.done) - self._before
        if left and made % self._every == 0:
            took = time.monotonic() - self._began
            about = f"about {clock(took / made * left)} left"
            self._note(f"{len(self.done):,} of {len(self._bench.orders):,} runs in {clock(took)}, {about}", "dim")

    def _note(self, text: str, style: str = "") -> None:
        self._terminal.note(f"{escape(self._bench.bench_task.task.name)}: {text}", style)


def race(terminal: Terminal, bench: Bench, jobs: int) -> dict[Order, BenchRun]:
    """Run what is missing, in worker processes. Raise KeyboardInterrupt after a signal; nothing is left behind."""

    def end(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    progress = BenchProgress(terminal, bench)
    alone = bench.bench_task.task.environment.exclusive  # there is one core for candidates
    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        with progress.shown(), closing(bench.race(jobs=1 if alone else jobs)) as outcomes:
            for outcome in outcomes:
                progress.take(outcome)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return progress.done


async def race_paid(progress: BenchProgress, paid: Paid) -> None:
    """Run what is missing with agents that ask models. The first signal ends cleanly, a second one at once."""
    asked = False

    async def take_all() -> None:
        async for outcome in paid.race():
            progress.take(outcome)

    racing = asyncio.create_task(take_all())

    def stop() -> None:
        nonlocal asked
        if asked:
            racing.cancel()
        asked = True
        paid.stop()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop)
    try:
        await racing
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    if asked:
        raise KeyboardInterrupt
