"""What a session may use, and which of its limits a program broke."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Breach = Literal["timeout", "out-of-memory", "output-limit", "process-limit", "disk-limit"]
"""A limit that the program broke."""


class Limits(Struct, frozen=True, kw_only=True):
    """What one session may use. Sizes are in bytes, times in seconds.

    `wall` and `cpu` bound each request (a call, one streamed item, a run); CPU counts from the end of the previous
    request, so imports and start-up belong to the first. Once all requests together took `total` of wall clock, the
    next one is a timeout: neither many small items nor a silent server must hold the engine for hours, so that while a
    connection to one is open, the time between requests counts. `memory` and `processes` (threads count) are for all
    processes of the session together, `disk` for everything it writes, which counts as memory too where the disk is
    in memory. `output` is for stdout and stderr each, of all calls together and of each run; `reply` for one value
    that comes back from a call, and for the files of one run together.
    """

    wall: float = 10.0
    cpu: float = 10.0
    total: float = 600.0
    memory: int = 512 * 1024 * 1024
    processes: int = 64
    disk: int = 256 * 1024 * 1024
    output: int = 1024 * 1024
    reply: int = 16 * 1024 * 1024
