"""Lines to workers: what is read from one, what is written to it, and how it ends. A command has one."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import Process
from collections.abc import Sequence
from typing import Protocol

from evogit.evaluation.worker_connection import WorkerLostError
from evogit.subprocesses import PIPE, let_go, start_beside

LONGEST_SAID = 2000
"""Bytes of a command's stderr that are kept, from its end."""

PIECE = 64 * 1024

PATIENCE = 5.0
"""Seconds for a worker to end by itself."""


class Line(Protocol):
    """A pair of byte streams that leads to one start of a worker."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    tells: bool
    """Whether what comes before the worker speaks is for a person to know."""

    async def said(self) -> str:
        """What was said beside the streams, which may tell why it ended."""

    async def end(self, patience: float = PATIENCE) -> None:
        """Let the worker end by itself, as nothing more comes, for so many seconds, then see to it."""


class CommandLine:
    """The stdin and stdout of a command."""

    tells = False

    def __init__(self, process: Process) -> None:
        assert process.stdin  # they are pipes
        assert process.stdout
        self.reader = process.stdout
        self.writer = process.stdin
        self._process = process
        self._last = asyncio.create_task(last_of(process))

    @classmethod
    async def open(cls, argv: Sequence[str]) -> CommandLine:
        """Start the command.

        Raises:
            WorkerLostError: there is no such command.
        """
        try:
            return cls(await start_beside(argv, env=os.environ, cwd=None, stdin=PIPE, stdout=PIPE, stderr=PIPE))
        except OSError as error:
            raise WorkerLostError(f"{argv[0]}: {error.strerror}") from error

    async def said(self) -> str:
        """The end of what it said on stderr."""
        await asyncio.wait([self._last], timeout=1)
        return self._last.result() if self._last.done() else ""

    async def end(self, patience: float = PATIENCE) -> None:
        """See to the end of the command and of what it started, also when the run is given up meanwhile."""
        self.writer.close()
        await ended(self._process, patience)
        self._last.cancel()


async def last_of(process: Process) -> str:
    """The end of what a command says on stderr, however much it is."""
    assert process.stderr  # it is a pipe
    kept = b""
    while piece := await process.stderr.read(PIECE):
        kept = (kept + piece)[-LONGEST_SAID:]
    return kept.decode(errors="replace")


async def ended(process: Process, patience: float) -> None:
    """Wait so long for a process, then kill its session, also when whoever asks gives up."""
    ending = asyncio.ensure_future(_end(process, patience))
    try:
        await asyncio.shield(ending)
    except asyncio.CancelledError:
        await ending
        raise


async def _end(process: Process, patience: float) -> None:
    if process.returncode is None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), patience)
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    let_go(process)  # asyncio waits until all is read, which may be endless
    await process.wait()
