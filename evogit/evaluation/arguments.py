"""What an evaluator gives to a candidate: JSON, binary values beside it, and inputs that are sent once."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

from evogit.evaluation.charges import carrying, reading
from evogit.sandbox import Piece, Place
from evogit.sandbox.values import dump

_NUMBERS = "biufc"
"""Kinds of numpy's numbers: what arrays may be made of."""


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
        return sum(map(reading, texts)) + carrying(sizes)


def put(value: Any) -> Put:
    """Make a value ready to be sent.

    Raises:
        ValueError: when it is neither JSON nor binary.
    """
    return Put(value, binary(value) or Piece(("json",), dump(value)))


def arguments(args: Sequence[Any], kwargs: Mapping[str, Any] | None) -> Arguments:
    """Take arguments apart.

    Raises:
        ValueError: when one is neither JSON nor binary.
    """
    named: dict[Place, Any] = dict(enumerate(args))
    named.update(kwargs or {})
    held = {place: value.piece for place, value in named.items() if isinstance(value, Put)}
    found = ((place, binary(value)) for place, value in named.items() if place not in held)
    pieces = {place: piece for place, piece in found if piece}
    plain: dict[Place, Any] = {place: None if place in held or place in pieces else named[place] for place in named}
    positional = [plain.pop(place) for place in range(len(args))]
    return Arguments(dump({"args": positional, "kwargs": plain}), pieces, held)


def restored(value: Any) -> Any:
    """The value itself, of one that was put."""
    return value.value if isinstance(value, Put) else value


def binary(value: Any) -> Piece | None:
    """A value that JSON cannot say as bytes: `bytes`, arrays of numpy, and whatever else is a buffer.

    Raises:
        ValueError: when it is an array of something other than numbers.
    """
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
