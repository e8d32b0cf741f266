"""Records to plain JSON values and back, each value checked against the type of its field.

A journal has a hundred thousand records and a command a second to read them: so a reader is put together once for a
type, and asks of each value no more than it must.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from msgspec import NODEFAULT, Struct
from msgspec.structs import fields

Reader = Callable[[Any], Any]
"""The value that a plain one stands for; raises `MisshapenError`."""


_PLAIN = frozenset({str, int, float, bool, type(None)})


MAX_INT = 1 << 53
"""Whole numbers beyond this are not exact for every reader of JSON; none of ours is negative."""


class MisshapenError(ValueError):
    """A value is not of the type of its field, or out of its range."""


def plain(value: Any) -> Any:
    """A value as JSON has it; of records the fields that do not have their default."""
    if type(value) in _PLAIN:  # most are, and to ask what else they are not takes long
        return value
    if isinstance(value, Struct):
        told = [(name, getattr(value, name), default) for name, default in _defaults(type(value))]
        return {name: plain(each) for name, each, default in told if each != default}
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    return value


@cache
def _defaults(kind: type[Struct]) -> list[tuple[str, Any]]:
    """Each field and its default."""
    known = fields(kind)
    made = (each.default if each.default_factory is NODEFAULT else each.default_factory() for each in known)
    return [(each.name, default) for each, default in zip(known, made, strict=True)]


def reader(kind: Any) -> Reader:
    """What reads plain values of a type: a record, and what the fields of ours are made of."""
    if isinstance(kind, type) and issubclass(kind, Struct):
        return _record_reader(kind)
    if kind is Any:
        return lambda value: value
    if kind in (str, bool, int, float):
        return _SIMPLE[kind]
    arguments, origin = get_args(kind), get_origin(kind)
    if origin is Literal:
        return _choice_reader(frozenset(arguments))
    if origin in (Union, types.UnionType):
        return _optional_reader(reader(next(each for each in arguments if each is not types.NoneType)))
    if origin is tuple:
        return _tuple_reader(reader(arguments[0]))
    if origin is Mapping:
        return _mapping_reader(arguments[1])
    raise TypeError(f"no rule for {kind}")


def _record_reader(kind: type[Struct]) -> Reader:
    """Values of a record; keys that it has no field for are left out, as a later version may have more."""
    hints = get_type_hints(kind)
    known = {name: reader(hints[name]) for name in kind.__struct_fields__}
    plain = {name: kind for name, kind in hints.items() if kind in (str, bool, int)}  # most are, and need no call

    def read(value: Any) -> Any:
        if not isinstance(value, dict):
            raise MisshapenError(f"expected the fields of {kind.__name__}, got {value!r:.80}")
        found = {}
        for name, each in value.items():
            if plain.get(name) is type(each) and (type(each) is not int or 0 <= each <= MAX_INT):
                found[name] = each
            elif name in known:
                try:
                    found[name] = known[name](each)
                except MisshapenError as error:
                    raise MisshapenError(f"{name}: {error}") from error
        try:
            return kind(**found)
        except TypeError as error:
            raise MisshapenError(str(error)) from error

    return read


def _read_text(value: Any) -> str:
    if type(value) is str:
        return value
    raise MisshapenError(f"expected a text, got {value!r:.80}")


def _read_flag(value: Any) -> bool:
    if type(value) is bool:
        return value
    raise MisshapenError(f"expected true or false, got {value!r:.80}")


def _read_int(value: Any) -> int:
    if type(value) in (int, float) and 0 <= value <= MAX_INT and value == int(value):
        return int(value)
    raise MisshapenError(f"expected a whole number from 0 to {MAX_INT}, got {value!r:.80}")


def _read_float(value: Any) -> float:
    if type(value) in (float, int) and abs(value) <= sys.float_info.max:
        return float(value)
    raise MisshapenError(f"expected a finite number, got {value!r:.80}")


_SIMPLE: dict[type, Reader] = {str: _read_text, bool: _read_flag, int: _read_int, float: _read_float}


def _choice_reader(choices: frozenset[str]) -> Reader:
    def read(value: Any) -> str:
        if type(value) is str and value in choices:
            return value
        raise MisshapenError(f"expected one of {', '.join(sorted(choices))}, got {value!r:.80}")

    return read


def _optional_reader(inner: Reader) -> Reader:
    return lambda value: None if value is None else inner(value)


def _tuple_reader(inner: Reader) -> Reader:
    def read(value: Any) -> tuple[Any, ...]:
        if type(value) is list:
            return tuple([inner(each) for each in value])
        raise MisshapenError(f"expected a list, got {value!r:.80}")

    return read


def _read_floats(value: Any) -> dict[str, float]:
    """A mapping to finite numbers; as a rule it is one as it came."""
    if type(value) is not dict:
        raise MisshapenError(f"expected an object, got {value!r:.80}")
    for each in value.values():
        if type(each) is not float or each - each != 0:  # infinite, or no number
            return {key: _read_float(each) for key, each in value.items()}
    return value


def _mapping_reader(kind: Any) -> Reader:
    inner = reader(kind)
    if kind is float:
        return _read_floats

    def read(value: Any) -> dict[str, Any]:
        if type(value) is dict:
            return value if kind is Any else {key: inner(each) for key, each in value.items()}
        raise MisshapenError(f"expected an object, got {value!r:.80}")

    return read
