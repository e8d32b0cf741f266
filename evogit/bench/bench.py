"""What a bench has to do, what of it is done already, and the doing of the rest."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Collection, Generator, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from evogit.bench.methods import Method
from evogit.bench.outcome import BenchRun, read, write
from evogit.bench.worker_run import BenchTask
from evogit.bench.workers import Order, outcomes

RAM = Path("/dev/shm")
"""A file system in memory, where runs of which little is kept take half the time."""

ROOM = 200_000
"""Bytes that a candidate may need there, at a generous guess."""

PREFIX = "evogit-bench-"
"""What the names of folders for repositories that are thrown away begin with."""

FRESH = 60.0
"""Seconds after which a folder has its lock, if its maker is alive."""


class Bench(Struct, frozen=True, kw_only=True):
    """Methods on one task, `seeds` of each; `folder` holds a file for each run."""

    bench_task: BenchTask
    methods: tuple[Method, ...]
    seeds: range
    folder: Path

    def file(self, method: Method, seed: int) -> Path:
        """Where what came of a run is kept."""
        return self.folder / f"{method.file_name}-{seed}.json"

    @property
    def orders(self) -> list[Order]:
        """All runs, seed by seed, so that a bench which is cut off has pairs."""
        return [(method, seed) for seed in self.seeds for method in self.methods]

    def done(self) -> dict[Order, BenchRun]:
        """The runs that are there and would come out the same today."""
        found = {order: read(self.file(*order)) for order in self.orders}
        return {
            (method, seed): outcome
            for (method, seed), outcome in found.items()
            if outcome and (outcome.method, outcome.seed) == (method.name, seed)
            if outcome.depends == self.bench_task.depends(method)
        }

    def missing(self, done: Collection[Order]) -> list[Order]:
        """The runs that are not done, in their order."""
        return [order for order in self.orders if order not in done]

    def asks(self, method: Method) -> bool:
        """Whether runs of this method ask models."""
        return any(spec.asks for spec in method.population(self.bench_task.agents))

    def stale(self, done: Collection[Order]) -> int:
        """How many files are there of runs that would come out otherwise today."""
        return sum(self.file(*order).exists() for order in self.missing(done))

    def race(self, *, jobs: int) -> Generator[BenchRun, None, None]:
        """Do the runs that are missing, and give each that is done; its file is written by then. Closing it ends all.

        Raises:
            EvoGitError: when the world fails; what is done stays.
            OSError: when the folder cannot be made.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        missing = self.missing(self.done())
        methods = {method.name: method for method in self.methods}
        with (
            _scratch(self.bench_task.evaluations * jobs) as scratch,
            closing(outcomes(self.bench_task, missing, scratch, jobs=jobs)) as found,
        ):
            for outcome in found:
                write(self.file(methods[outcome.method], outcome.seed), outcome)
                yield outcome


@contextmanager
def _scratch(candidates: int) -> Iterator[Path]:
    """Yield a folder for the runs' repositories, in memory unless TMPDIR names another place."""
    roomy = RAM.is_dir() and os.access(RAM, os.W_OK) and shutil.disk_usage(RAM).free > candidates * ROOM
    parent = RAM if roomy and "TMPDIR" not in os.environ else Path(tempfile.gettempdir())
    _clear(parent)
    with tempfile.TemporaryDirectory(prefix=PREFIX, dir=parent, ignore_cleanup_errors=True) as folder:
        lock = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield Path(folder)
        finally:
            os.close(lock)


def _clear(parent: Path) -> None:
    """Remove what killed benches left: their locks are free."""
    for folder in parent.glob(f"{PREFIX}*"):
        with suppress(OSError):  # somebody else's, or gone meanwhile
            lock = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY)
            try:
                about = os.fstat(lock)
                if about.st_uid == os.getuid() and time.time() - about.st_mtime > FRESH:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder)
            finally:
                os.close(lock)
