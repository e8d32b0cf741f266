"""Where workers that call are joined with the lines that wait for them, in the program of a queue of jobs."""

from __future__ import annotations

import asyncio
import json
import secrets
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from msgspec import Struct

from evogit.evaluation.clusters.calling import SIZE, accepted
from evogit.evaluation.clusters.worker_lines import ClusterError
from evogit.evaluation.lines import PIECE

CALL_FILE = "run.json"


class CalledFar(Struct, frozen=True):
    """A worker behind a connection that it made."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def get(self) -> bytes:
        """What it says next."""
        try:
            return await self.reader.read(PIECE)
        except OSError as error:
            raise ClusterError(f"the connection broke: {error}") from error

    async def put(self, data: bytes) -> None:
        """Send it something."""
        try:
            if not data:
                self.writer.write_eof()
            self.writer.write(data)
            await self.writer.drain()
        except (OSError, RuntimeError) as error:
            raise ClusterError(f"the connection broke: {error}") from error


def _listening() -> socket.socket:
    """One port for all that workers may reach this machine by."""
    if socket.has_dualstack_ipv6():
        with suppress(OSError):  # a machine may have that turned off
            return socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("", 0))


class Switchboard:
    """Takes workers' calls, each for the line that waits for its job, or for any where no job is asked for."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(SIZE)
        self._waiting: dict[int, asyncio.Future[CalledFar]] = {}

    @asynccontextmanager
    async def opened(self, folder: Path) -> AsyncIterator[Path]:
        """Be there for workers that read the file in this folder, which is closed to others."""
        server = await asyncio.start_server(self._call, sock=_listening())
        about = {
            "hosts": [socket.gethostname(), socket.getfqdn()],
            "port": server.sockets[0].getsockname()[1],
            "key": self._key.hex(),
        }
        file = folder / CALL_FILE
        file.write_text(json.dumps(about))
        try:
            yield file
        finally:
            server.close()

    @asynccontextmanager
    async def awaited(self, number: int) -> AsyncIterator[asyncio.Future[CalledFar]]:
        """The worker of the job with this number, once it calls, until this ends."""
        coming: asyncio.Future[CalledFar] = asyncio.get_running_loop().create_future()
        self._waiting[number] = coming
        try:
            yield coming
        finally:
            self._waiting.pop(number, None)
            if coming.done() and not coming.cancelled():
                coming.result().writer.close()

    async def _call(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = await accepted(self._key, reader, writer)
        if number == 0:  # a person's own job is anybody's
            number = next(iter(self._waiting), None)
        coming = self._waiting.pop(number, None) if number else None
        if coming is None or coming.done():
            with suppress(OSError):
                writer.close()
        else:
            coming.set_result(CalledFar(reader, writer))
