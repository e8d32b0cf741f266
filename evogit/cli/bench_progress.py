"""The runs of a bench in the foreground: progress is shown, and signals stop it without losing what is done."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from types import FrameType

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from evogit.bench.bench import Bench
from evogit.bench.outcome import BenchRun
from evogit.bench.paid import Paid
from evogit.bench.workers import Order
from evogit.cli.terminal import Terminal
from evogit.cli.text import clock, count, escape

SLOW = 3600.0
"""Seconds of the past that the remaining time is estimated from: runs end seldom."""


LINES = 10
"""Lines that say how far a bench is where none can be drawn, about."""


class BenchProgress:
    """Says how far the runs of one bench are."""

    def __init__(self, terminal: Terminal, bench: Bench) -> None:
        self._terminal = terminal
        self._bench = bench
        self._name = escape(bench.bench_task.task.name)
        self.done = bench.done()
        self._methods = {method.name: method for method in bench.methods}
        self._began = time.monotonic()
        self._before = len(self.done)
        self._bar: tuple[Progress, TaskID] | None = None
        self._every = max(len(self.missing) // LINES, 1)

    @property
    def missing(self) -> list[Order]:
        """The runs that are left to do."""
        return self._bench.missing(self.done)

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Report what was done before, how far it is meanwhile, and what it took."""
        total = len(self._bench.orders)
        if self.done:
            self._terminal.note(f"{self._name}: {count(len(self.done), 'run')} of {total} done before")
        if stale := self._bench.stale(self.done):
            self._terminal.note(f"{self._name}: {count(stale, 'run')} of another EvoGit, task or settings made again")
        try:
            with self._drawn(total):
                yield
        finally:
            left = f", {len(self.missing):,} left; the same command goes on" if self.missing else ""
            if made := len(self.done) - self._before:
                took = clock(time.monotonic() - self._began)
                self._terminal.note(f"{self._name}: {count(made, 'run')} in {took}{left}", "dim")

    @contextmanager
    def _drawn(self, total: int) -> Iterator[None]:
        if not (self._terminal.live and self.missing):
            yield
            return
        columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
        left = TimeRemainingColumn(elapsed_when_finished=True)
        bar = Progress(*columns, left, console=self._terminal.err, transient=True, speed_estimate_period=SLOW)
        with bar:
            self._bar = bar, bar.add_task(self._name, total=total, completed=len(self.done))
            yield
            self._bar = None

    def take(self, outcome: BenchRun) -> None:
        """One more run is done."""
        self.done[self._methods[outcome.method], outcome.seed] = outcome
        if self._bar:
            bar, line = self._bar
            bar.update(line, completed=len(self.done))
        elif self.missing and (made := len(self.done) - self._before) % self._every == 0:
            took = time.monotonic() - self._began
            left = f"about {clock(took / made * len(self.missing))} left"
            told = f"{len(self.done):,} of {len(self._bench.orders):,} runs in {clock(took)}, {left}"
            self._terminal.note(f"{self._name}: {told}", "dim")


def race(terminal: Terminal, bench: Bench, jobs: int, *, keep: bool) -> dict[Order, BenchRun]:
    """Run what is missing, in worker processes.

    Raises:
        KeyboardInterrupt: a signal came; what is done is kept.
    """
    progress = BenchProgress(terminal, bench)
    alone = bench.bench_task.task.environment.exclusive  # there is one core for candidates
    with progress.shown(), _ending_by_signals(), closing(bench.race(jobs=1 if alone else jobs, keep=keep)) as outcomes:
        for outcome in outcomes:
            progress.take(outcome)
    return progress.done


def race_paid(terminal: Terminal, bench: Bench, paid: Paid) -> dict[Order, BenchRun]:
    """Run what is missing with agents that ask models; the first signal ends the current run cleanly, a second at once.

    Raises:
        KeyboardInterrupt: a signal came; what is done is kept.
    """
    progress = BenchProgress(terminal, bench)
    with progress.shown():
        if asyncio.run(_paid(progress, paid)):
            raise KeyboardInterrupt
    return progress.done


async def _paid(progress: BenchProgress, paid: Paid) -> bool:
    """Whether a signal stopped it."""
    asked = False
    racing = asyncio.create_task(_take_all(progress, paid))

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
    return asked


async def _take_all(progress: BenchProgress, paid: Paid) -> None:
    async for outcome in paid.race():
        progress.take(outcome)


@contextmanager
def _ending_by_signals() -> Iterator[None]:
    """Meanwhile what ends a process is an interrupt like Ctrl-C, so that workers and folders are cleared away."""

    def end(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
