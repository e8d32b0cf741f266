"""The runs of a bench in the foreground: progress is reported, and signals stop it without losing what is done."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from types import FrameType

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from evogit.bench.bench import Bench
from evogit.bench.outcome import BenchRun
from evogit.bench.paid import Paid
from evogit.bench.workers import Order
from evogit.cli.terminal import Terminal
from evogit.cli.text import clock, count, escape

SPEED_WINDOW_S = 3600.0
"""The past from which the remaining time is estimated: runs end seldom."""

MAX_PROGRESS_LINES = 10
"""Lines that report progress if no bar can be drawn, about."""


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
        columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
        left = TimeRemainingColumn(elapsed_when_finished=True)
        bar = Progress(*columns, left, console=terminal.err, transient=True, speed_estimate_period=SPEED_WINDOW_S)
        self._bar = bar if terminal.live and bench.missing(self.done) else None

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Report what was done before, how far it is meanwhile, and what it took."""
        total = len(self._bench.orders)
        if self.done:
            self._note(f"{count(len(self.done), 'run')} of {total} done before")
        if stale := self._bench.stale(self.done):
            self._note(f"{count(stale, 'run')} of another EvoGit, task or settings made again")
        try:
            with self._bar or nullcontext():
                if self._bar:
                    name = escape(self._bench.bench_task.task.name)
                    self._bar.add_task(name, total=total, completed=len(self.done))
                yield
        finally:
            left = len(self._bench.missing(self.done))
            if made := len(self.done) - self._before:
                rest = f", {left:,} left; the same command goes on" if left else ""
                self._note(f"{count(made, 'run')} in {clock(time.monotonic() - self._began)}{rest}", "dim")

    def take(self, outcome: BenchRun) -> None:
        """Count one more run."""
        self.done[self._methods[outcome.method], outcome.seed] = outcome
        left, made = len(self._bench.missing(self.done)), len(self.done) - self._before
        if self._bar:
            self._bar.update(self._bar.task_ids[0], completed=len(self.done))
        elif left and made % self._every == 0:
            took = time.monotonic() - self._began
            about = f"about {clock(took / made * left)} left"
            self._note(f"{len(self.done):,} of {len(self._bench.orders):,} runs in {clock(took)}, {about}", "dim")

    def _note(self, text: str, style: str = "") -> None:
        self._terminal.note(f"{escape(self._bench.bench_task.task.name)}: {text}", style)


def race(terminal: Terminal, bench: Bench, jobs: int) -> dict[Order, BenchRun]:
    """Run what is missing, in worker processes; what is done is kept.

    Raise KeyboardInterrupt if a signal came, and workers and folders were cleared away.
    """

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


def race_paid(terminal: Terminal, bench: Bench, paid: Paid) -> dict[Order, BenchRun]:
    """Run what is missing with agents that ask models; the first signal ends the current run cleanly, a second at once.

    Raise KeyboardInterrupt if a signal came; what is done is kept.
    """
    progress = BenchProgress(terminal, bench)
    with progress.shown():
        if asyncio.run(_race_paid(progress, paid)):
            raise KeyboardInterrupt
    return progress.done


async def _race_paid(progress: BenchProgress, paid: Paid) -> bool:
    """Return whether a signal stopped it."""
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
    return asked
