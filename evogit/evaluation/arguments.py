"""What an evaluator gives to a candidate: JSON, binary values beside it, and inputs that are sent once."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

from evogit.sandbox import CallReply, Piece, Place
from evogit.sandbox.values import dump

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

_NUMBERS = "biufc"
"""Kinds of numpy's numbers: what arrays may be made of."""


class Charge(Struct, frozen=True):
    """Seconds of CPU and wall clock that count, and of CPU that do not though a candidate could have used them."""

    cpu: float
    wall: float
    transport: float


def charge(reply: CallReply, reading: Callable[[], float], writing: Callable[[], float]) -> Charge:
    """Return the charge of a call: transport of values is free, up to `ALLOWED` times our own CPU seconds for it.

    Reading the arguments is free if no code of the candidate's could run before (`phases.clean`). Where CPU can be
    hidden, all wall clock beyond the allowance counts. `reading` and `writing` measure ours for the same values.
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
    allowed = AT_LEAST
    for reference in references:
        if used > allowed:
            allowed += reference()
    return allowed


def reading(text: bytes) -> float:
    """Seconds of CPU to read a JSON text of ours."""
    return _seconds(lambda: json.loads(text))


def writing(value: object, size: int) -> float:
    """Return the CPU seconds to write a value and carry `size` bytes; a reply may be padded with spaces."""
    return _seconds(lambda: json.dumps(value).encode()) + PER_BYTE * size


def _seconds(work: Callable[[], object]) -> float:
    began = time.thread_time()
    work()
    return time.thread_time() - began


@dataclass(frozen=True, slots=True)
class Put:
    """An input that is sent once to each life of a program, however many calls have it; `Program.put` makes one."""

    value: Any = field(repr=False)
    piece: Piece


class Arguments(Struct, frozen=True):
    """The arguments of a call: a JSON text with nulls where `pieces` and `held` belong."""

    text: bytes
    pieces: Mapping[Place, Piece]
    held: Mapping[Place, Piece]

    def reading(self) -> float:
        """Seconds of CPU that it takes us to read all of it."""
        texts, sizes = [self.text], 0
        for piece in (*self.pieces.values(), *self.held.values()):
            if piece.form == ("json",):
                texts.append(bytes(piece.content))
            else:
                sizes += len(piece.content)
        return sum(map(reading, texts)) + PER_BYTE * sizes


def put(value: Any) -> Put:
    """Make a value ready to be sent. Raises ValueError when it is neither JSON nor binary."""
    return Put(value, binary(value) or Piece(("json",), dump(value)))


def arguments(args: Sequence[Any], kwargs: Mapping[str, Any] | None) -> Arguments:
    """Take arguments apart. Raises ValueError when one is neither JSON nor binary."""
    named: dict[Place, Any] = dict(enumerate(args))
    named.update(kwargs or {})
    held = {place: value.piece for place, value in named.items() if isinstance(value, Put)}
    found = ((place, binary(value)) for place, value in named.items() if place not in held)
    pieces = {place: piece for place, piece in found if piece}
    plain: dict[Place, Any] = {place: None if place in held or place in pieces else named[place] for place in named}
    positional = [plain.pop(place) for place in range(len(args))]
    return Arguments(dump({"args": positional, "kwargs": plain}), pieces, held)


def binary(value: Any) -> Piece | None:
    """Return bytes, arrays of numpy and buffers as bytes, None for others. Raises ValueError if not of numbers."""
    numpy = sys.modules.get("numpy")
    if isinstance(value, int | float | str | list | tuple | dict | None) or (
        numpy and isinstance(value, numpy.generic)
    ):
        return None
    if isinstance(value, bytes | bytearray):
        return Piece(("bytes",), bytes(value))
    if numpy and isinstance(value, numpy.ndarray):
        if value.dtype.kind not in _NUMBERS:
            raise ValueError(f"expected an array of numbers, got one of {value.dtype}")
        return Piece(("numpy", value.dtype.str, list(value.shape)), value.tobytes())
    try:
        view = memoryview(value)
    except TypeError:
        return None
    if math.prod(view.shape or ()) * view.itemsize != view.nbytes or len(view.format) > 1:
        raise ValueError(f"expected a buffer of plain numbers, got one of {view.format!r}")
    return Piece(("memory", view.format, list(view.shape or ())), view.tobytes())
