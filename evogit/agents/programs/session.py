"""A coding program in a sandbox, seen from the engine: started in its workspace, heard, served, ended, read back.

All that it has beside its sandbox are two ports of its own loopback interface, whose connections come out here: one to
models and one to have its files evaluated. `sandbox/porter.py` is the other end, and has the protocol.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct, to_builtins

from evogit.agents import NoUsableChangeError
from evogit.agents.programs.read_back import Member, members
from evogit.core import SandboxError
from evogit.sandbox import CallReply, Limits
from evogit.sandbox.archive import pack
from evogit.sandbox.interpreter import helper
from evogit.sandbox.session import Sandbox, Session

HEAD = struct.Struct(">cII")
PIECE = 32768  # bytes of a frame that we send
LONGEST_FRAME = 1 << 20
MOST_VISITORS = 32  # connections at a time; more are hung up on
KEPT = 128 * 1024  # bytes that are kept of the beginning of what a program prints, and of its end
PATIENCE = 60.0  # seconds for the inner end to begin
PORTS = range(20_000, 32_000)
"""Any will do that no connection is given by chance: nothing else is on that loopback interface, or where the program
has a network, expects them."""

Visitor = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
"""Serves one connection of the program."""


class Ports(Struct, frozen=True, kw_only=True):
    """Of the loopback interface inside: for us, for models, for evaluations."""

    control: int
    models: int
    evaluations: int

    @classmethod
    def drawn(cls) -> Ports:
        """Three that cannot be guessed."""
        return cls(**dict(zip(cls.__struct_fields__, random.SystemRandom().sample(PORTS, 3), strict=True)))


class Setup(Struct, frozen=True, kw_only=True):
    """The workspace that a program starts with."""

    argv: Sequence[str]  # the command; its folder is the workspace
    env: Mapping[str, str]  # environment variables beside those of every sandbox
    home: Mapping[str, str]  # files below its home, path -> content
    workspace: Mapping[str, str]  # files that are laid over the checked out ones
    branch: str  # the branch of the bundle that it begins at
    exclude: Sequence[str]  # patterns of what Git is to ignore in the workspace


class End(Struct, frozen=True, kw_only=True):
    """How a program ended: `code` (negative: a signal), or why it `failed` to start; `message` of its last commit."""

    code: int | None = None
    failed: str = ""
    message: str = ""


@dataclass(slots=True)
class Transcript:
    """What a program printed: its beginning and its end."""

    first: bytearray = field(default_factory=bytearray)
    last: bytearray = field(default_factory=bytearray)
    size: int = 0

    def add(self, data: bytes) -> None:
        """More of it."""
        self.size += len(data)
        room = KEPT - len(self.first)
        self.first += data[:room]
        self.last += data[max(room, 0) :]
        del self.last[:-KEPT]

    @property
    def text(self) -> bytes:
        """What is kept, with a line for what is missing."""
        missing = self.size - len(self.first) - len(self.last)
        between = f"\n[... {missing:,} more bytes ...]\n".encode() if missing else b""
        return bytes(self.first) + between + bytes(self.last)


class Container:
    """One session of a program, which does not outlive the context of `entered`."""

    def __init__(self, session: Session, ports: Ports, models: Visitor, evaluations: Visitor) -> None:
        self._session = session
        self._ports = ports
        self._visitors = {b"m": models, b"e": evaluations}
        self._channels: dict[int, asyncio.StreamWriter] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._writer: asyncio.StreamWriter | None = None
        self.transcript = Transcript()
        # set when the program has ended, or nothing is heard of it any more
        self.end: asyncio.Future[End] = asyncio.get_running_loop().create_future()

    async def start(self, setup: Setup, bundle: bytes) -> None:
        """Make the workspace and start. Raises NoUsableChangeError: no Python, or too slow; SandboxError: it broke."""
        porter = helper("porter.py")
        numbers = map(str, (self._ports.control, self._ports.models, self._ports.evaluations))
        stream = await asyncio.to_thread(self._begin, ["python3", "-s", "-P", "-c", porter, *numbers])
        reader, self._writer = await asyncio.open_connection(sock=stream)
        self._keep(self._hear(reader))
        tools = {"evaluate.py": helper("evaluate.py")}
        await self._send(b"s", 0, json.dumps({**to_builtins(setup), "tools": tools}).encode())
        for start in range(0, len(bundle), PIECE):
            await self._send(b"w", 0, bundle[start : start + PIECE])
        await self._send(b"g")

    def _begin(self, argv: Sequence[str]) -> socket.socket:
        started = self._session.start(argv)
        stream = started if started.failure else self._session.connect(self._ports.control, patience=PATIENCE)
        if isinstance(stream, CallReply):
            raise NoUsableChangeError(f"no program starts in the sandbox, which needs python3: {stream.detail}")
        return stream

    async def quit(self, patience: float) -> None:
        """End the program, and wait so many seconds to hear how it ended; the inner end may not even read that."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await self._send(b"q")
                await asyncio.wait([self.end])

    async def salvage(self, most: int) -> Iterator[Member]:
        """Return the workspace without `.git`, `most` bytes of it. Raises SandboxError: there is nothing to read."""
        reply, entries, contents = await asyncio.to_thread(self._session.salvage, most, [".git"])
        if reply.failure:
            raise SandboxError(f"the workspace cannot be read: {reply.detail}")
        return members(entries, contents)

    def breach(self) -> str:
        """Which limit the program broke, in a sentence; empty where it broke none."""
        failure = self._session.failure()
        return f"it {failure.detail.removesuffix(' in the server')}, a limit of its sandbox" if failure else ""

    async def close(self) -> None:
        """End everything."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in (*self._channels.values(), *([self._writer] if self._writer else [])):
            writer.transport.abort()
        await asyncio.to_thread(self._session.close)

    async def _send(self, kind: bytes, channel: int = 0, data: bytes = b"") -> None:
        assert self._writer
        self._writer.write(HEAD.pack(kind, channel, len(data)) + data)
        with contextlib.suppress(OSError):  # whoever hears tells of the end
            await self._writer.drain()

    def _keep(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.add(task := asyncio.ensure_future(work))
        task.add_done_callback(self._tasks.discard)

    async def _hear(self, reader: asyncio.StreamReader) -> None:
        """Take frames until the inner end is gone; it is in the hands of the program, which may send us anything."""
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, RuntimeError):  # as of bytes after their end
            while True:
                kind, channel, size = HEAD.unpack(await reader.readexactly(HEAD.size))
                if size > LONGEST_FRAME:
                    break
                await self._take(kind, channel, await reader.readexactly(size))
                await asyncio.sleep(0)  # thousands may have come at once
        for writer in self._channels.values():
            writer.transport.abort()
        self._ended(End())

    async def _take(self, kind: bytes, channel: int, data: bytes) -> None:
        if kind == b"o":
            self.transcript.add(data)
        elif kind == b"x":
            self._ended(_end(data))
        elif kind in self._visitors and channel not in self._channels and len(self._channels) < MOST_VISITORS:
            ours, theirs = socket.socketpair()  # the visitor serves a channel as if it were a connection
            reader, self._channels[channel] = await asyncio.open_connection(sock=ours)
            self._keep(self._serve(self._visitors[kind], *await asyncio.open_connection(sock=theirs)))
            self._keep(self._carry(channel, reader))
        elif channel not in self._channels:
            await self._send(b"f", channel)
        elif kind == b"d":
            self._channels[channel].write(data)
            with contextlib.suppress(OSError):
                await self._channels[channel].drain()
        elif kind == b"f" and self._channels[channel].can_write_eof():
            self._channels[channel].write_eof()

    def _ended(self, end: End) -> None:
        if not self.end.done():
            self.end.set_result(end)

    async def _serve(self, visitor: Visitor, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await visitor(reader, writer)
        except OSError:
            pass  # the program hung up
        finally:
            writer.close()

    async def _carry(self, channel: int, reader: asyncio.StreamReader) -> None:
        """Send what the visitor says, and forget the channel when that was all."""
        with contextlib.suppress(OSError):
            while data := await reader.read(PIECE):
                await self._send(b"d", channel, data)
        await self._send(b"f", channel)
        self._channels.pop(channel).close()


@contextlib.asynccontextmanager
async def entered(
    sandbox: Sandbox, limits: Limits, ports: Ports, models: Visitor, evaluations: Visitor
) -> AsyncIterator[Container]:
    """A container with nothing in it, which is gone with the context. Raises SandboxError: it cannot be had."""
    opening = asyncio.ensure_future(asyncio.to_thread(sandbox.open, pack({}), limits))
    try:
        session = await asyncio.shield(opening)
    except asyncio.CancelledError:  # a thread cannot be broken off
        with contextlib.suppress(SandboxError):
            await asyncio.to_thread((await opening).close)
        raise
    container = Container(session, ports, models, evaluations)
    try:
        yield container
    finally:
        await container.close()


def _end(data: bytes) -> End:
    """What the inner end says of the program's end."""
    try:
        said = json.loads(data)
        code, failed, message = (said.get(name) for name in ("code", "failed", "message"))
    except (ValueError, RecursionError, AttributeError):
        return End()
    return End(
        code=code if isinstance(code, int) else None,
        failed=failed[:2000] if isinstance(failed, str) else "",
        message=message[:5000] if isinstance(message, str) else "",
    )
