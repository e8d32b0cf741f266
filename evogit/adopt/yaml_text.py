"""Reads what configuration files of other systems say in YAML, as these systems do, within bounds.

What is read can be written as JSON: a date becomes a text, and None stands for what JSON has not, or is too large.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import date
from typing import Any

MAX_CHARS = 1 << 18
"""Characters of a file; a longer one counts as empty."""
MAX_DEPTH = 50
MAX_NODES = 100_000
"""Values of a file once all aliases are replaced by what they stand for."""
MAX_BITS = 64
"""Bits of an integer."""
MAX_SECONDS = 30 * 24 * 3600.0


def read_yaml(text: str) -> dict[str, Any]:
    """The mapping that a file holds; empty where it holds none, is not well formed, or is beyond the bounds."""
    import yaml  # 20 ms that only tasks of other systems need

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    text = text.removeprefix("\ufeff")
    if len(text) > MAX_CHARS:
        return {}
    try:
        depth = 0
        for event in yaml.parse(text, Loader=loader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:
                return {}
        root = yaml.compose(text, Loader=loader)
        value = yaml.load(text, Loader=loader) if root and _size(root, {}) <= MAX_NODES else None  # noqa: S506 - safe
    except (yaml.YAMLError, ValueError, OverflowError, AttributeError):  # ValueError: a date or number that there is
        # not; AttributeError: a text that says that it is a date (PyYAML 6)
        return {}
    return plain if isinstance(plain := _plain(value), dict) else {}


def _plain(value: Any) -> Any:
    """The same as JSON may say it; a key that is no text is left out."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items() if isinstance(key, str)}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, date):
        return str(value)
    is_small = isinstance(value, int) and value.bit_length() <= MAX_BITS
    return value if is_small or isinstance(value, str | float) else None


def _size(node: Any, sizes: dict[int, float]) -> float:
    """Values in a node once aliases are replaced; infinite for one that holds itself."""
    if id(node) not in sizes:
        sizes[id(node)] = math.inf
        sizes[id(node)] = 1 + sum(_size(each, sizes) for each in _inner(node))
    return sizes[id(node)]


def _inner(node: Any) -> Iterator[Any]:
    values = node.value if isinstance(node.value, list) else ()
    for each in values:
        yield from each if isinstance(each, tuple) else (each,)


def at(values: Any, *keys: str) -> Any:
    """Return the value at this path of nested mappings; None if there is none."""
    for key in keys:
        values = values.get(key) if isinstance(values, dict) else None
    return values


def seconds(value: object, default: float) -> float:
    """A time that a file says, if it is one that can be waited for."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 < value <= MAX_SECONDS else default  # type: ignore[operator, arg-type]
