"""Processes that do whole runs, each with a warm evaluator of its own, so that every core is busy."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import shutil
import signal
import threading
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import TracebackType
from typing import Self

from evogit.bench.methods import Method
from evogit.bench.outcome import BenchRun
from evogit.bench.worker_run import BenchRunner, BenchTask
from evogit.core import EvoGitError, RefusedError
from evogit.evaluation.evaluator import Evaluator
from evogit.evaluation.inputs import PUBLIC

SAFE_PATH = "PYTHONSAFEPATH"

HELD = frozenset({signal.SIGINT, signal.SIGHUP})
"""The signals that a terminal sends to all its processes."""

PATIENCE = 10.0
"""Seconds for an idle worker to end by itself, and its evaluator with it."""

Order = tuple[Method, int]
"""A run to do: the method and the seed."""


def outcomes(
    bench_task: BenchTask, orders: Sequence[Order], scratch: Path, *, jobs: int
) -> Generator[BenchRun, None, None]:
    """Do these runs, `jobs` at a time, and give what came of each as it ends.

    Closing it ends the workers at once.

    Raises:
        EvoGitError: a run failed because the world does, or a worker died.
    """
    waiting = deque(orders)
    with ExitStack() as stack:
        workers = [Worker(bench_task, scratch) for _ in range(min(jobs, len(orders)))]
        busy = {worker.connection: worker for worker in map(stack.enter_context, workers)}
        for worker in workers:
            worker.send(waiting.popleft())
        while busy:
            for ready in wait(list(busy)):
                worker = busy[ready]  # type: ignore[index]  # one of ours
                outcome = worker.receive()
                if waiting:
                    worker.send(waiting.popleft())
                else:
                    busy.pop(worker.connection).finish()
                yield outcome


class Worker:
    """One process, which does the runs that are sent to it; a context manager that ends it at once."""

    def __init__(self, bench_task: BenchTask, scratch: Path) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, self._theirs = context.Pipe()
        self._process = context.Process(target=work, args=(self._theirs, bench_task, scratch), daemon=True)

    def __enter__(self) -> Self:
        with signals_held_back():
            self._process.start()
        self._theirs.close()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.terminate()
        self._process.join()
        self.connection.close()

    def send(self, order: Order) -> None:
        """Have it do a run; that it died is told by `receive`."""
        with suppress(ConnectionError):
            self.connection.send(order)

    def receive(self) -> BenchRun:
        """What came of the run that was sent. Raises EvoGitError: it failed, or the process died."""
        try:
            reply: BenchRun | EvoGitError = self.connection.recv()
        except (EOFError, ConnectionError):
            self._process.join()
            code = self._process.exitcode or 0
            how = (
                "was killed, perhaps for lack of memory" if code < 0 else f"ended with {code}; what it printed says why"
            )
            raise EvoGitError(
                f"a worker of the bench {how}; the same command again goes on, --jobs 1 needs less memory"
            ) from None
        if isinstance(reply, EvoGitError):
            raise reply
        return reply

    def finish(self) -> None:
        """Let it end by itself, since nothing is left to do."""
        with suppress(ConnectionError):
            self.connection.send(None)
        self._process.join(PATIENCE)


def work(connection: Connection, bench_task: BenchTask, scratch: Path) -> None:
    """In a worker: do what comes in until there is nothing more, and send what came of it."""
    for number in HELD:
        signal.signal(number, lambda *_: None)  # the parent's; ignoring them outright would be inherited by candidates
    signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD)
    end_with_parent()
    try:
        asyncio.run(_work(connection, bench_task, scratch))
    except EvoGitError as error:
        connection.send(error)
    except OSError as error:  # a full disk, say
        connection.send(RefusedError(f"{error.strerror}: {error.filename}" if error.filename else str(error)))


async def _work(connection: Connection, bench_task: BenchTask, scratch: Path) -> None:
    async with Evaluator(bench_task.task, provider=bench_task.sandbox, jobs=1, drawing=PUBLIC) as evaluator:
        runner = BenchRunner(bench_task, evaluator)
        while order := connection.recv():
            method, seed = order
            folder = scratch / f"{method.file_name}-{seed}.git"
            connection.send(await runner.run(method, seed, folder))
            shutil.rmtree(folder)


@contextmanager
def signals_held_back() -> Iterator[None]:
    """Processes started meanwhile never see what a terminal sends: Ctrl-C and hanging up are the parent's.

    Nor do they import from the current folder, as `-P` has it: multiprocessing writes their command lines itself.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, HELD)
    safe = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"
    resource_tracker.ensure_running()  # a process too, and starting it lets SIGINT in again
    signal.pthread_sigmask(signal.SIG_BLOCK, HELD)
    try:
        yield
    finally:
        os.environ.pop(SAFE_PATH)
        os.environ.update({} if safe is None else {SAFE_PATH: safe})
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_with_parent() -> None:
    """In a new worker: end when the parent does, even if it is killed."""

    def wait() -> None:
        if parent := multiprocessing.parent_process():
            parent.join()
            os._exit(0)

    threading.Thread(target=wait, daemon=True).start()
