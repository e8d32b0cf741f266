"""Evaluator processes are forked from one process that has imported already what they need.

So a start takes a few milliseconds instead of a tenth of a second, and what they share is in memory once. The server is
started with the first of them and ends with the process that started it; it runs nothing but `fork_server_main`.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import BinaryIO, Self

START = "import gc; gc.disable(); from evogit.evaluation.fork_server_main import main; main()"
"""Nobody looks for garbage among what is imported: it stays, and to look for it is a sixth of the start."""

PATIENCE = 10.0
"""Seconds for the server to end."""


class Forked:
    """A process that was forked: a connection to its stdin and stdout, and how it ends.

    Attributes:
        reader, writer: what it writes to stdout, and what goes to its stdin.
    """

    def __init__(self, pid: int, streams: _Streams, told: _Streams) -> None:
        self.reader, self.writer = streams
        self._pid = pid
        self._told = told
        self._ended = asyncio.ensure_future(told[0].read())

    @classmethod
    async def start(cls, environment: Mapping[str, str], prints: BinaryIO) -> Self:
        """Fork one, in a session of its own at `/`; what it prints, and its stderr, goes to a file.

        Raises:
            ChildProcessError: there is no server, and the file says why.
        """
        (pipe, theirs), (told, teller) = socket.socketpair(), socket.socketpair()
        streams, said = await asyncio.open_connection(sock=pipe), await asyncio.open_connection(sock=told)
        try:
            with theirs, teller:
                _server(environment, prints).fork(environment, [theirs.fileno(), prints.fileno(), teller.fileno()])
            pid = int(await said[0].readexactly(_PID))
        except BaseException as error:
            for _, writer in (streams, said):
                writer.close()
            if isinstance(error, (asyncio.IncompleteReadError, ConnectionError)):
                raise ChildProcessError("the fork server ended") from error
            raise
        return cls(pid, streams, said)

    @property
    def ended(self) -> bool:
        """Whether it has ended."""
        return self._ended.done()

    async def wait(self) -> int:
        """Wait for its end; the exit code, or minus the signal that ended it."""
        told = await asyncio.shield(self._ended)
        return int(told) if told else -signal.SIGKILL  # the server was killed, and all with it

    def kill(self) -> None:
        """Kill it with all that it started and that stayed in its group."""
        if not self.ended:
            with suppress(ProcessLookupError):
                os.killpg(self._pid, signal.SIGKILL)

    def close(self) -> None:
        """Let go of it, once it has ended."""
        self.writer.close()
        self._told[1].close()


_Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]

_PID = 10
"""Digits of a process id, as a forked process tells its own."""


class _Server:
    """The process that forks. Its end of the connection closes with us, however we end, and it ends then."""

    def __init__(self, environment: Mapping[str, str], stderr: BinaryIO) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-u", "-c", START, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                cwd="/",
                env=dict(environment),
                start_new_session=True,
                pass_fds=[theirs.fileno()],
            )
        self.owner = os.getpid()

    def runs(self) -> bool:
        """Whether it is ours, and there."""
        return self.owner == os.getpid() and self._process.poll() is None

    def fork(self, environment: Mapping[str, str], descriptors: list[int]) -> None:
        """Ask for a process with these descriptors as stdin and stdout, as stderr, and to tell of itself.

        It may use the cores that the calling thread may use now, as if that had started it.
        """
        cores = sorted(os.sched_getaffinity(0)) if sys.platform == "linux" else []
        request = {"environment": dict(environment), "cores": cores}
        socket.send_fds(self._socket, [json.dumps(request).encode()], descriptors)

    def close(self) -> None:
        """End it."""
        self._socket.close()
        if self.owner == os.getpid():
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(PATIENCE)


_one = threading.Lock()
_running: list[_Server] = []


def _server(environment: Mapping[str, str], stderr: BinaryIO) -> _Server:
    """The server of this process; a new one is started so, and says to `stderr` why it cannot go on."""
    with _one:
        if not (_running and _running[0].runs()):
            for server in _running:
                server.close()
            _running[:] = [_Server(environment, stderr)]
        return _running[0]


@atexit.register
def _end() -> None:
    for server in _running:
        server.close()
