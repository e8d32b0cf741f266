"""A cluster as a run sees it: what opens lines to workers there."""

from __future__ import annotations

import asyncio
import json
import math
import os
import socket
from asyncio.subprocess import Process
from dataclasses import dataclass
from importlib.util import find_spec

from msgspec import Struct
from msgspec.structs import asdict

from evogit.config import Task
from evogit.core import UsageError
from evogit.evaluation.lines import PATIENCE, ended, last_of
from evogit.subprocesses import DEVNULL, PIPE, python, start_beside

EXTRAS = {"slurm": "submitit", "ray": "ray"}
"""Extra of EvoGit, called as the kind of cluster that needs it -> what it brings, which that kind's program imports."""

OVERHEAD = 1 << 30
"""Bytes that an evaluation takes beside its candidate: the worker, the evaluator, EvoGit's own part of the sandbox."""

SLOW_END = 15.0
"""Seconds for a cluster's program to end its workers' jobs."""


class Needs(Struct, frozen=True):
    """What one evaluation takes of a machine: whole cores, bytes, graphics processors; with `exclusive`, all of it."""

    cpus: int
    memory: int
    gpus: int
    exclusive: bool

    @classmethod
    def of(cls, task: Task) -> Needs:
        """Those of a task, as its `[limits]` and `[sandbox]` say."""
        wanted, limits = task.environment, task.limits
        cores = math.ceil(wanted.cpus) + wanted.exclusive  # one core is kept for all but the candidate
        return cls(cores, limits.memory + limits.disk + OVERHEAD, wanted.gpus, wanted.exclusive)


@dataclass(slots=True)
class ClusterLine:
    """A pair of streams through a cluster's program; what it has to say beside them, it says before a worker speaks."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    program: ClusterProgram
    tells: bool = True

    async def said(self) -> str:
        """What the program said, if that has ended."""
        return await self.program.said()

    async def end(self, patience: float = PATIENCE) -> None:
        """Close it; the program sees to the worker's end."""
        self.writer.close()


class ClusterProgram:
    """One start of a cluster's program, which is sent one end of each line through its stdin."""

    def __init__(self, process: Process, control: socket.socket) -> None:
        self._process = process
        self._control = control
        self._last = asyncio.create_task(last_of(process))

    @classmethod
    async def start(cls, kind: str, where: str, needs: Needs) -> ClusterProgram:
        """Start it."""
        control, theirs = socket.socketpair()
        with theirs:
            program = python("-m", f"evogit.evaluation.clusters.{kind}_main", where, json.dumps(asdict(needs)))
            process = await start_beside(program, env=os.environ, stdin=theirs.fileno(), stdout=DEVNULL, stderr=PIPE)
        return cls(process, control)

    @property
    def lives(self) -> bool:
        """Whether lines can be asked for."""
        return self._process.returncode is None

    async def open(self) -> ClusterLine:
        """A line to a worker that may come in an hour, or never: then it says why, and ends."""
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(self._control, [b"+"], [theirs.fileno()])
        return ClusterLine(*await asyncio.open_unix_connection(sock=ours), self)

    async def said(self) -> str:
        """The end of what it said on stderr, once it has ended."""
        if self.lives:
            return ""
        await asyncio.wait([self._last], timeout=1)
        return self._last.result() if self._last.done() else ""

    async def end(self) -> None:
        """Let it end, with all of its workers."""
        self._control.close()
        await ended(self._process, SLOW_END)
        self._last.cancel()


class Cluster:
    """Opens lines to workers of a cluster; its program is started with the first, and again when it has died."""

    def __init__(self, kind: str, where: str, task: Task) -> None:
        """Start nothing yet.

        Raises:
            UsageError: the extra that this needs is not installed.
        """
        if kind in EXTRAS and not find_spec(EXTRAS[kind]):
            raise UsageError(f"--workers {kind} needs EvoGit's extra of that name: pip install 'evogit[{kind}]'")
        self._kind = kind
        self._where = where
        self._needs = Needs.of(task)
        self._program: ClusterProgram | None = None
        self._starting = asyncio.Lock()

    async def open(self) -> ClusterLine:
        """A line to a worker of its own; what is at the other end may come later, or tell why it does not."""
        async with self._starting:
            if self._program and not self._program.lives:
                await self._program.end()
                self._program = None
            if self._program is None:
                self._program = await ClusterProgram.start(self._kind, self._where, self._needs)
        return await self._program.open()

    async def end(self) -> None:
        """End the program, and with it all workers."""
        if self._program:
            await self._program.end()
