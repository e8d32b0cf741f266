"""The host's end of the pipe to a supervisor; every byte that comes back is taken for hostile."""

from __future__ import annotations

import json
import os
import select
import struct
import time
from collections.abc import Mapping
from typing import Any

from evogit.sandbox import values

FRAME = struct.Struct(">II")
HEADER = 1 << 16  # most bytes of a header that the supervisor may send
CHUNK = 1 << 18  # most bytes read or written at once


class LostError(Exception):
    """The supervisor has ended."""


class Wire:
    """Sends and receives frames over two file descriptors, never waiting longer than until a deadline."""

    def __init__(self, into: int, out: int) -> None:
        self._into = into
        self._out = out
        self._come = bytearray()
        for fd in (into, out):
            os.set_blocking(fd, False)

    def send(self, header: Mapping[str, Any], body: bytes, *, deadline: float) -> None:
        """Send a frame until `deadline` (of `time.monotonic`). Raises TimeoutError, LostError once it has ended."""
        text = json.dumps(header).encode()
        self.send_bytes(FRAME.pack(len(text), len(body)) + text + body, deadline=deadline)

    def send_bytes(self, data: bytes, *, deadline: float) -> None:
        """Send what is not a frame, such as the supervisor itself; fails like `send`."""
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(self._into, rest[:CHUNK]) :]
            except BlockingIOError:
                _wait(self._into, select.POLLOUT, deadline)
            except (BrokenPipeError, ConnectionResetError) as error:
                raise LostError("it does not take requests any more") from error

    def receive(self, most: int, *, deadline: float) -> tuple[dict[str, Any], bytes]:
        """Take one frame with a body of at most `most` bytes. Raises as `send`, and ValueError for no frame."""
        header, body = FRAME.unpack(self._take(FRAME.size, deadline))
        if header > HEADER or body > most:
            raise ValueError(f"expected a frame of at most {HEADER} and {most} bytes, got {header} and {body}")
        fields = values.parse(self._take(header, deadline))
        if not isinstance(fields, dict):
            raise ValueError(f"expected a JSON object as header, got {type(fields).__name__}")
        return fields, self._take(body, deadline)

    def _take(self, size: int, deadline: float) -> bytes:
        """The next `size` bytes; what comes with them is kept, so that a small frame is read at once."""
        while len(self._come) < size:
            if time.monotonic() > deadline:
                raise TimeoutError
            try:
                piece = os.read(self._out, CHUNK)
            except BlockingIOError:
                _wait(self._out, select.POLLIN, deadline)
                continue
            except ConnectionResetError:
                piece = b""
            if not piece:
                raise LostError("it has ended")
            self._arrived(piece)
        taken = bytes(memoryview(self._come)[:size])
        del self._come[:size]
        return taken

    def _arrived(self, piece: bytes) -> None:
        self._come += piece


def _wait(fd: int, event: int, deadline: float) -> None:
    poll = select.poll()
    poll.register(fd, event)
    if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
        raise TimeoutError
