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
HEADER = 1 << 16
"""Most bytes of a header that the supervisor may send."""
CHUNK = 1 << 16


class LostError(Exception):
    """The supervisor has ended."""


class Wire:
    """Sends and receives frames over two file descriptors, never waiting longer than until a deadline."""

    def __init__(self, into: int, out: int) -> None:
        self._into, self._out = into, out
        for fd in (into, out):
            os.set_blocking(fd, False)

    def send(self, header: Mapping[str, Any], body: bytes, *, deadline: float) -> None:
        """Send one frame; the deadline is in seconds of `time.monotonic`.

        Raises:
            TimeoutError: when the supervisor does not take it in time.
            LostError: when the supervisor has ended.
        """
        text = json.dumps(header).encode()
        rest = memoryview(FRAME.pack(len(text), len(body)) + text + body)
        while rest:
            try:
                rest = rest[os.write(self._into, rest[: 4 * CHUNK]) :]
            except BlockingIOError:
                _wait(self._into, select.POLLOUT, deadline)
            except BrokenPipeError as error:
                raise LostError("it does not take requests any more") from error

    def receive(self, most: int, *, deadline: float) -> tuple[dict[str, Any], bytes]:
        """Take one frame with a body of at most `most` bytes.

        Raises:
            TimeoutError: when it has not come by the deadline.
            LostError: when the supervisor has ended.
            ValueError: when it is no frame, too large or has no JSON object as its header.
        """
        header, body = FRAME.unpack(self._read(FRAME.size, deadline))
        if header > HEADER or body > most:
            raise ValueError(f"expected a frame of at most {HEADER} and {most} bytes, got {header} and {body}")
        fields = values.parse(self._read(header, deadline))
        if not isinstance(fields, dict):
            raise ValueError(f"expected a JSON object as header, got {type(fields).__name__}")
        return fields, self._read(body, deadline)

    def _read(self, size: int, deadline: float) -> bytes:
        data = bytearray()
        while len(data) < size:
            try:
                piece = os.read(self._out, min(size - len(data), 4 * CHUNK))
            except BlockingIOError:
                _wait(self._out, select.POLLIN, deadline)
                continue
            if not piece:
                raise LostError("it has ended")
            data += piece
        return bytes(data)


def _wait(fd: int, event: int, deadline: float) -> None:
    poll = select.poll()
    poll.register(fd, event)
    if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
        raise TimeoutError
