"""Evaluator processes are forked from one process that has already imported what they need.

So a start takes a few milliseconds instead of a tenth of a second. The server is started with the first of them, runs
nothing but `evaluator_main`, and ends with the process that started it.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import resource
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import BinaryIO, Self

from evogit.subprocesses import DEVNULL, TimeoutExpired, python, start

START = "import gc; gc.disable(); from evogit.evaluation.evaluator_main import main; main()"
"""Nobody looks for garbage among what is imported: it stays, and to look for it is a sixth of the start."""

PATIENCE = 10.0
"""Seconds for the server to end."""

TRIES = 2
"""How often a process is asked for: a server that is being killed may seem to be there."""


class Forked:
    """A process that was forked: `reader` has its stdout, `writer` its stdin; and how it ended."""

    def __init__(self, pid: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, told: _Told) -> None:
        self.reader = reader
        self.writer = writer
        self._pid = pid
        self._told = told

    @classmethod
    async def start(cls, environment: Mapping[str, str], prints: BinaryIO) -> Self:
        """Fork one, in a session of its own at `/`, that prints to a file. Raises ChildProcessError with the reason."""
        why = ""
        for _ in range(TRIES):
            server = _servers.get(environment)
            pipe, told = server.fork(environment, prints)
            with ExitStack() as given_up:
                for end in (pipe, told):
                    given_up.callback(end.close)
                _, said = await asyncio.get_running_loop().create_connection(_Told, sock=told)
                pid = await said.pid
                if pid is not None:
                    streams = await asyncio.open_connection(sock=pipe)
                    given_up.pop_all()
                    return cls(pid, *streams, said)
                said.close()
            why = server.why()
        raise ChildProcessError(f"no process can be forked\n{why}".strip())

    @property
    def ended(self) -> bool:
        """Whether it has ended."""
        return self._told.code.done()

    async def wait(self) -> int:
        """Wait for its end; the exit code, or minus the signal that ended it."""
        return await asyncio.shield(self._told.code)

    def kill(self) -> None:
        """Kill it with all that it started and that stayed in its group."""
        if not self.ended:
            with suppress(ProcessLookupError):
                os.killpg(self._pid, signal.SIGKILL)

    def close(self) -> None:
        """Let go of it, once it has ended."""
        self.writer.close()
        self._told.close()


class _Told(asyncio.Protocol):
    """The reports about a process: its id (None if there is none), and its exit code as `subprocess` has it.

    SIGKILL if the server was killed, with all that it forked. Futures are not cancelled with the loop, as tasks are.
    """

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.pid: asyncio.Future[int | None] = loop.create_future()
        self.code: asyncio.Future[int] = loop.create_future()
        self._text = b""
        self._transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        *lines, self._text = (self._text + data).split(b"\n")
        for line in map(int, lines):
            if not self.pid.done():
                self.pid.set_result(line)
            elif not self.code.done():
                self.code.set_result(line)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.pid.done():
            self.pid.set_result(None)
        if not self.code.done():
            self.code.set_result(-signal.SIGKILL)

    def close(self) -> None:
        """Listen no more."""
        if self._transport:
            self._transport.close()


class _Server:
    """The process that forks, and ends with us, however we end; what it forked is killed with it."""

    def __init__(self, environment: Mapping[str, str], traits: Sequence[object]) -> None:
        self.traits = traits
        self.owner = os.getpid()
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  # closed with the process
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            for end in (self._socket, theirs):
                end.setblocking(True)
            self._process = start(
                python("-u", "-c", START, str(theirs.fileno()), str(self.owner)),
                env=environment,
                stdin=DEVNULL,
                stdout=DEVNULL,
                stderr=self._stderr,
                pass_fds=[theirs.fileno()],
            )

    def runs(self) -> bool:
        """Whether it is ours, and there."""
        return self.owner == os.getpid() and self._process.poll() is None

    def fork(self, environment: Mapping[str, str], prints: BinaryIO) -> tuple[socket.socket, socket.socket]:
        """Ask for a process; return its stdin and stdout, and its reports. No turn of the loop, as we may fork."""
        (pipe, theirs), (told, teller) = socket.socketpair(), socket.socketpair()
        with theirs, teller, suppress(ConnectionError):
            for end in (theirs, teller):
                end.setblocking(True)
            request = json.dumps(dict(environment)).encode()
            socket.send_fds(self._socket, [request], [theirs.fileno(), prints.fileno(), teller.fileno()])
        return pipe, told

    def why(self) -> str:
        """What it said, as far as it is there no more."""
        with suppress(TimeoutExpired):
            self._process.wait(0.1)
        if self._process.returncode is None:
            return ""
        self._stderr.seek(0)
        return self._stderr.read().decode(errors="replace")

    def leave(self) -> None:
        """Close what a fork of us inherited: nothing there is its."""
        self._socket.close()

    def close(self) -> None:
        """End it."""
        if self.owner == os.getpid():
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
            with suppress(TimeoutExpired):
                self._process.wait(PATIENCE)
        self._socket.close()
        self._stderr.close()


class _Servers:
    """The servers of this process, one for each way in which it has started evaluators."""

    def __init__(self) -> None:
        self._all: list[_Server] = []
        self._one = threading.Lock()

    def get(self, environment: Mapping[str, str]) -> _Server:
        """Return a server that is as if it was started now; start one if there is none."""
        traits = _traits(environment)
        with self._one:
            server = next((server for server in self._all if server.runs() and server.traits == traits), None)
            if server is None:
                server = _Server(environment, traits)
                self._all.append(server)
            return server

    def leave(self) -> None:
        """In a fork of ours: close what is not its, and have a lock that no thread holds which is not there."""
        self._one = threading.Lock()
        for server in self._all:
            server.leave()

    def close(self) -> None:
        """End them."""
        for server in self._all:
            server.close()


def _traits(environment: Mapping[str, str]) -> list[object]:
    """What a process has of the one that started it, but for its environment, and what Python makes of that at once."""
    limits = [resource.getrlimit(getattr(resource, name)) for name in dir(resource) if name.startswith("RLIMIT_")]
    found: list[object] = [environment.get("LANG"), os.getpriority(os.PRIO_PROCESS, 0), limits]
    if sys.platform == "linux":
        status = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
        found += [os.sched_getaffinity(0), *(line for line in status if line.startswith("Umask"))]
    return found


_servers = _Servers()
os.register_at_fork(after_in_child=_servers.leave)
atexit.register(_servers.close)
