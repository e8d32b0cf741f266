"""Strict JSON, the only form in which values cross the boundary of a sandbox."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from typing import Any, NoReturn

CONTAINERS = 1_000_000  # arrays and objects in one text: a megabyte of `[],[],` must not become a gigabyte of lists
LONGEST_KEY = 4300  # digits of a key that may be read as an integer
ALIKE = 1000  # values with one hash: sets and dicts compare each of these with each other
_WIDE = (1 << 61) - 1  # the first integer whose hash is that of a smaller one
_DIGITS = re.compile(rb"[0-9]{19}")


class MisfitError(ValueError):
    """A value is not of the type that the evaluator expects."""


def parse(raw: bytes, *, depth: int = 64) -> Any:
    """Read a JSON text that may have been written to do harm.

    Raises ValueError: for no JSON, NaN, infinity, overflowing numbers, integers beyond 4300 digits, a lone surrogate,
    thousands of integers with one hash, a repeated key, or nesting beyond `depth`; a sentence part.
    """
    containers = raw.count(b"[") + raw.count(b"{")
    if containers > CONTAINERS:
        raise ValueError(f"it has {containers} brackets, more than {CONTAINERS}")
    try:
        value = json.loads(
            raw.decode("utf-8"), parse_constant=_reject, parse_float=_finite, object_pairs_hook=_without_duplicates
        )
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8: {error}") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not JSON: {error}") from error
    except RecursionError as error:
        raise ValueError(f"it is nested deeper than {depth} levels") from error
    if containers > depth and _deeper(value, depth):
        raise ValueError(f"it is nested deeper than {depth} levels")
    if b"\\u" in raw:
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise ValueError("it has half of a surrogate pair, which is not a character") from error
    if _DIGITS.search(raw):
        check_hashes(_wide_integers(value))
    return value


def check_hashes(values: Iterable[Hashable]) -> None:
    """Raise MisfitError for more than `ALIKE` values with one hash, of which a set would take hours."""
    found = list(values)
    if len(found) <= ALIKE:
        return
    (most, times), *_ = Counter(map(hash, found)).most_common(1)
    if times > ALIKE:
        alike = sorted(repr(each) for each in found if hash(each) == most)
        if (different := sum(1 for _ in itertools.groupby(alike))) > ALIKE:
            raise MisfitError(f"{different} of its values have the same hash, more than {ALIKE}")


def _wide_integers(value: Any) -> Iterator[int]:
    """Integers that can have the hash of another one; keys of objects, which may be read as integers, too."""
    todo = [value]
    while todo:
        part = todo.pop()
        if isinstance(part, dict):
            todo.extend(part.values())
            todo.extend(int(key) for key in part if 19 <= len(key) <= LONGEST_KEY and key.lstrip("-").isdecimal())
        elif isinstance(part, list):
            todo.extend(part)
        elif isinstance(part, int) and abs(part) >= _WIDE:
            yield part


def dump(value: Any) -> bytes:
    """Write a value as JSON text. Raises ValueError when JSON cannot say it (NaN, a set, an object, a cycle)."""
    try:
        return json.dumps(value, allow_nan=False, ensure_ascii=True, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"expected a value that JSON can say; {error}") from error


def _reject(constant: str) -> NoReturn:
    raise ValueError(f"it has {constant}, which is not a number")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"it has {text[:40]}, which is too large for a number")
    return number


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    items = dict(pairs)
    if len(items) < len(pairs):
        raise ValueError("it has the same key twice")
    return items


def _deeper(value: Any, depth: int) -> bool:
    """Whether containers are nested more than `depth` deep; iterative, so that the input cannot exhaust the stack."""
    level = [value] if isinstance(value, list | dict) else []
    for _ in range(depth):
        children = (part.values() if isinstance(part, dict) else part for part in level)
        level = [child for items in children for child in items if isinstance(child, list | dict)]
    return bool(level)
