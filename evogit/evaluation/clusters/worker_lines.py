"""What clusters' programs share: they take the run's end of each line from stdin, and join it with a worker's."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from evogit.evaluation.lines import PATIENCE, PIECE


class ClusterError(Exception):
    """There is no worker, or it is gone, for a reason that a person should read."""


class Far(Protocol):
    """A worker's end of a line; both raise ClusterError once it is gone."""

    async def get(self) -> bytes:
        """What it says next; nothing once it has ended."""

    async def put(self, data: bytes) -> None:
        """Send it something, once it can take it; nothing: no more comes."""


Say = Callable[[str], None]
"""Takes what a person should know before a worker speaks."""

Bring = Callable[[Say], AbstractAsyncContextManager[Far]]
"""Starts a worker, waits until it is there, and sees to its end; raises ClusterError if it does not come."""


async def serve(bring: Bring) -> None:
    """Bring a worker for each line until the run closes stdin, and all lines with it."""
    arrived: asyncio.Queue[socket.socket | None] = asyncio.Queue()
    with socket.socket(fileno=0) as control:

        def arrive() -> None:
            _, ends, *_ = socket.recv_fds(control, 1, 1)
            arrived.put_nowait(socket.socket(fileno=ends[0]) if ends else None)

        asyncio.get_running_loop().add_reader(control, arrive)
        async with asyncio.TaskGroup() as group:
            while near := await arrived.get():
                group.create_task(_attend(near, bring))
            asyncio.get_running_loop().remove_reader(control)


async def _attend(near: socket.socket, bring: Bring) -> None:
    reader, writer = await asyncio.open_unix_connection(sock=near)
    far: asyncio.Future[Far] = asyncio.get_running_loop().create_future()
    there = asyncio.create_task(_pass_there(reader, far))
    back = asyncio.create_task(_pass_back(writer, far, bring))
    try:
        await asyncio.wait([there, back], return_when=asyncio.FIRST_COMPLETED)
        if far.done() and not back.done():  # the run is gone, and the worker ends by itself
            with contextlib.suppress(ClusterError):
                await far.result().put(b"")
            await asyncio.wait([back], timeout=PATIENCE)
    finally:
        there.cancel()
        back.cancel()
        await asyncio.wait([there, back])
        writer.close()
    if not back.cancelled():
        back.result()


async def _pass_there(reader: asyncio.StreamReader, far: asyncio.Future[Far]) -> None:
    with contextlib.suppress(ClusterError, OSError):
        while data := await reader.read(PIECE):
            await (await far).put(data)


async def _pass_back(writer: asyncio.StreamWriter, far: asyncio.Future[Far], bring: Bring) -> None:
    spoke = False
    with contextlib.suppress(OSError):
        try:
            async with bring(lambda said: writer.write(f"{said}\n".encode())) as worker:
                far.set_result(worker)
                while data := await worker.get():
                    spoke = True
                    writer.write(data)
                    await writer.drain()
        except ClusterError as error:
            if not spoke:  # else it would be taken for what the worker says
                writer.write(str(error).encode())
                await writer.drain()
