"""Values that came back as bytes: taken apart, their sizes and types checked, nothing of them believed."""

from __future__ import annotations

import math
import re
import struct
import sys
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from evogit.sandbox.values import MisfitError, parse

_LENGTH = struct.Struct(">I")
_KINDS = {"bool": "b", "int": "i", "uint": "u", "float": "f", "complex": "c"}
_NAMES = {kind: name for name, kind in _KINDS.items()}
_TYPE = re.compile(r"[<>|=]?([biufc])(1|2|4|8|16)")
_FORMATS = {
    **dict.fromkeys("bhilqn", "i"),
    **dict.fromkeys("BHILQN", "u"),
    **dict.fromkeys("efd", "f"),
    "?": "b",
}
"""Letters of `struct` that a buffer may be made of, and the kind of number that each is."""
_DIMENSIONS = 32
"""Most dimensions that numpy 1 can have."""
MOST = 1000
"""Most binary values in one reply."""


class Array(Struct, frozen=True):
    """What `returns` may be: an array of numbers of one type, such as `"float64"`, and of a shape, None being any.

    With `finite`, no number in it is NaN or infinite; to look takes numpy.
    """

    dtype: str
    shape: tuple[int | None, ...] | None = None
    finite: bool = True

    def check(self, value: Any) -> Any:
        """The value, if it is such an array. Raises MisfitError if it is not."""
        dtype, shape = _described(value)
        if dtype != self.dtype:
            raise MisfitError(f"expected an array of {self.dtype}, got {dtype}")
        wanted = self.shape
        if wanted is not None and (
            len(wanted) != len(shape) or any(each not in (None, size) for each, size in zip(wanted, shape, strict=True))
        ):
            raise MisfitError(f"expected an array of the shape {wanted}, got {tuple(shape)}")
        if self.finite and dtype.startswith(("float", "complex")):
            numpy = sys.modules.get("numpy")
            if not (
                numpy.isfinite(value).all() if numpy else all(map(math.isfinite, value.cast("B").cast(value.format)))
            ):
                raise MisfitError("expected finite numbers, got NaN or infinity")
        return value


def checked(value: Any, wanted: Any) -> Any:
    """Return the value if it is what is wanted: an array, bytes, or for None anything. Raises MisfitError if not."""
    if isinstance(wanted, Array):
        return wanted.check(value)
    if wanted is bytes and not isinstance(value, bytes):
        raise MisfitError(f"expected bytes, got {value!r:.80}")
    return value


def checked_items(value: Any, wanted: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the values of a list of that many. Raises MisfitError if one is not what is wanted."""
    if not isinstance(value, list) or len(value) != len(wanted):
        raise MisfitError(f"expected {len(wanted)} values, got {value!r:.80}")
    return tuple(map(checked, value, wanted))


def read(raw: bytes) -> tuple[Any, Any, int]:
    """The value of a binary reply, what of it was JSON, and how many bytes were not.

    Arrays come as those of numpy where the evaluator has imported it, else as memoryviews.

    Raises:
        ValueError: when it is not as the protocol has it; the message is a sentence part.
    """
    places, text, *contents = _pieces(raw)
    value, plain, listed = parse(text), parse(text), parse(places)
    if not isinstance(listed, list) or len(listed) != len(contents) or not 0 < len(listed) <= MOST:
        raise ValueError("its binary parts are not what it says they are")
    for entry, content in zip(listed, contents, strict=True):
        if not isinstance(entry, list) or len(entry) != 2 or not all(isinstance(part, list) for part in entry):
            raise ValueError("its binary parts are not what it says they are")
        place, form = entry
        if not place:
            return _understood(form, content), plain, len(content)
        _put(value, place, _understood(form, content))
    return value, plain, sum(map(len, contents))


def _put(value: Any, place: list[Any], item: Any) -> None:
    key = place[0]
    fits = isinstance(value, dict) and isinstance(key, str) and key in value
    if not fits and not (isinstance(value, list) and type(key) is int and 0 <= key < len(value)):
        raise ValueError(f"it has no place {key!r} for a binary part")
    if len(place) > 1 or value[key] is not None:
        raise ValueError(f"its place {key!r} is taken")
    value[key] = item


def _pieces(raw: bytes) -> Iterator[bytes]:
    position = 0
    while position < len(raw):
        if position + _LENGTH.size > len(raw):
            raise ValueError("it is cut")
        (size,) = _LENGTH.unpack_from(raw, position)
        position += _LENGTH.size
        if position + size > len(raw):
            raise ValueError("it is cut")
        yield raw[position : position + size]
        position += size


def _understood(form: list[Any], content: bytes) -> Any:
    if form == ["bytes"]:
        return content
    if len(form) != 3 or form[0] not in ("numpy", "memory") or not isinstance(form[1], str):
        raise ValueError(f"it has a binary part of an unknown form, {str(form)[:80]}")
    kind, dtype, shape = form
    sizes = isinstance(shape, list) and all(type(size) is int and size >= 0 for size in shape)
    if not sizes or len(shape) > _DIMENSIONS:
        raise ValueError(f"it has an array of the shape {str(shape)[:80]}")
    letter, size = _number(kind, dtype)
    if math.prod(shape) * size != len(content):
        raise ValueError(f"it has an array of {len(content)} bytes that should have {math.prod(shape) * size}")
    if numpy := sys.modules.get("numpy"):
        return numpy.frombuffer(content, dtype if kind == "numpy" else letter).reshape(shape)
    view = memoryview(content)
    return view.cast("B").cast(letter, shape) if len(content) else view  # type: ignore[call-overload]


def _number(kind: str, dtype: str) -> tuple[str, int]:
    """The letter that `struct` has for a type of numbers, and the bytes of one."""
    if kind == "memory":
        if dtype not in _FORMATS:
            raise ValueError(f"it has a buffer of {dtype[:20]!r}, which are no numbers")
        return dtype, struct.calcsize(dtype)
    found = _TYPE.fullmatch(dtype)
    if not found:
        raise ValueError(f"it has an array of {dtype[:20]!r}, which are no numbers")
    size = int(found[2])
    letters = [each for each, of in _FORMATS.items() if of == found[1] and struct.calcsize(each) == size]
    if "numpy" not in sys.modules and (not letters or dtype[0] == ">"):
        raise ValueError(f"it has an array of {dtype!r}, for which the evaluator would need numpy")
    return letters[0] if letters else "", size


def _described(value: Any) -> tuple[str, tuple[int, ...]]:
    """Return the name of an array's type, such as `float64`, and its shape. Raises MisfitError if it is no array."""
    numpy = sys.modules.get("numpy")
    if numpy and isinstance(value, numpy.ndarray):
        return value.dtype.name, value.shape
    if not isinstance(value, memoryview):
        raise MisfitError(f"expected an array, got {value!r:.80}")
    kind = _FORMATS.get(value.format, "")
    bits = "" if kind == "b" else str(8 * value.itemsize)
    return f"{_NAMES.get(kind, 'bytes')}{bits}", tuple(value.shape or ())
