"""The stream between a coding program's sandbox and the engine, whose inner end is in the program's hands."""

from __future__ import annotations

import asyncio
import socket
import time
from typing import Any

from evogit.agents.programs.session import HEAD, Container, Ports


async def nobody(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Whoever a program might ask."""


async def test_a_flood_of_frames_holds_nobody_up() -> None:
    """All that came at once would be taken in one turn of the loop: each frame is nine bytes."""
    ours, theirs = socket.socketpair()
    session: Any = None
    container = Container(session, Ports.drawn(), nobody, nobody)
    reader, container._writer = await asyncio.open_connection(sock=ours)
    reader.feed_data(HEAD.pack(b"o", 7, 0) * 28_000)
    theirs.close()
    longest, began = 0.0, time.thread_time()
    hearing = asyncio.create_task(container._hear(reader))
    while not hearing.done():
        turn = time.thread_time()
        await asyncio.sleep(0)
        longest = max(longest, time.thread_time() - turn)
    container._writer.transport.abort()
    assert container.end.done()
    assert longest < (time.thread_time() - began) / 10
