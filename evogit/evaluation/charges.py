"""What of a call is charged to the candidate: not the transport of values, as far as that is known to be transport.

docs/design/sandbox.md has the reasoning.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence

from msgspec import Struct

from evogit.sandbox import CallReply

ALLOWED = 2.0
"""Times what reading or writing a value takes us: a process that just got new memory is that much slower."""
AT_LEAST = 50e-6
"""Seconds that are not worth being told from transport: two messages, and a small value."""
RELEASING = 0.1
"""Share of the time to read values that it takes to let go of them, which is done while the reply is written."""
PER_BYTE = 1e-9
"""Seconds of CPU to carry a byte through a pipe."""
WAITING = 1e-3
"""Seconds of wall clock beyond CPU: a core that is not free at once."""


_Part = tuple[tuple[float, float], Sequence[Callable[[], float]]]


class Charge(Struct, frozen=True):
    """Seconds of CPU and wall clock that count, and of CPU that do not though a candidate could have used them."""

    cpu: float
    wall: float
    transport: float


def charge(reply: CallReply, reading: Callable[[], float], writing: Callable[[], float]) -> Charge:
    """What a call is charged.

    Reading the arguments before any code of the candidate's could run is free. Otherwise it, and writing the value,
    are as much as they take us, or a little more; what goes beyond that is the candidate's own. Where CPU can be
    hidden, all wall clock of these parts counts that goes beyond.

    Args:
        reply: the call's, with its phases if the supervisor told them.
        reading: seconds of CPU that it takes us to read such arguments; asked for only where it matters.
        writing: the same, for the value.
    """
    phases = reply.phases
    if phases is None:
        return Charge(reply.usage.cpu, reply.usage.wall, 0.0)
    (cpu, wall), transport = phases.call, 0.0
    parts: list[_Part] = [(phases.encode, (lambda: ALLOWED * writing(), lambda: RELEASING * reading()))]
    if not phases.clean:
        parts.append((phases.decode, (lambda: ALLOWED * reading(),)))
    for used, references in parts:
        allowed = _allowed(used[0], references)
        beyond = used[0] - min(used[0], allowed)
        cpu += beyond
        wall += beyond if phases.counted else max(0.0, used[1] - allowed - WAITING)
        transport += min(used[0], allowed)
    return Charge(cpu, wall, transport)


def _allowed(used: float, references: Sequence[Callable[[], float]]) -> float:
    """Seconds of CPU of a part of a call that are taken for transport; what is enough is not made more."""
    allowed = AT_LEAST
    for reference in references:
        if used > allowed:
            allowed += reference()
    return allowed


def reading(text: bytes) -> float:
    """Seconds of CPU to read a JSON text of ours."""
    return _seconds(lambda: json.loads(text))


def writing(value: object, size: int) -> float:
    """Seconds of CPU to write a value that was read from JSON, and to carry `size` bytes beside it.

    What the text of the reply was is not asked: a program may have filled it up with spaces.
    """
    return _seconds(lambda: json.dumps(value).encode()) + PER_BYTE * size


def carrying(size: int) -> float:
    """Seconds of CPU to carry bytes as they are."""
    return PER_BYTE * size


def _seconds(work: Callable[[], object]) -> float:
    began = time.thread_time()
    work()
    return time.thread_time() - began
