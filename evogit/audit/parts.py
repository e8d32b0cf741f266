"""Parts of what is asked and answered, at any depth.

A place is a path of keys: a field's name, the number of an element, or EACH for all elements of a list and all values
of a table at once, KEYS for a table's names, LINES and WORDS of a text, JSON for what a text says in JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from typing import Any

EACH, KEYS, LINES, WORDS, JSON = "each()", "keys()", "lines()", "words()", "json()"
DEEP = 4
"""Keys of a path."""
FIELDS = 8
"""Fields of a record, or elements of a row, that are looked into one by one."""
MOST = 24
"""Places of a value that are looked into."""
LONG = 2000
"""Elements from which on a list is not compared with another one."""

Place = tuple[Any, ...]


def read(value: Any, place: Place) -> Any:
    """What stands there; lists within EACH are put together.

    Raises:
        LookupError, TypeError, ValueError, AttributeError: there is nothing there.
    """
    if not place:
        return value
    key, rest = place[0], place[1:]
    if key == EACH:
        parts = [read(each, rest) for each in (value.values() if isinstance(value, dict) else value)]
        return list(chain.from_iterable(parts)) if all(isinstance(part, list) for part in parts) else parts
    return read(_VIEWS[key](value) if key in _VIEWS else value[key], rest)


_VIEWS: dict[str, Callable[[Any], Any]] = {
    KEYS: lambda table: list(table.keys()),
    LINES: lambda text: text.splitlines(),
    WORDS: lambda text: text.split(),
    JSON: json.loads,
}


def places(value: Any, place: Place = ()) -> Iterator[Place]:
    """Where a value has lists, or what can be read as one: columns of rows and records, names, lines, words."""
    if len(place) > DEEP:
        return
    if isinstance(value, dict):
        yield from _of_table(value, place)
    elif isinstance(value, list):
        yield place
        if value and isinstance(value[0], list | dict):
            if isinstance(value[0], list):
                yield (*place, EACH)
            inner = places(value[0], (*place, EACH))
            yield from (each for each in inner if each != (*place, EACH))
            yield from _columns(value, place)
    elif isinstance(value, str):
        yield from _of_text(value, place)


def _of_table(value: dict[str, Any], place: Place) -> Iterator[Place]:
    parts = list(value.values())
    if len(parts) > 1 and len({type(part) for part in parts}) == 1:
        yield (*place, KEYS)
        yield (*place, EACH)
    for key, part in islice(value.items(), FIELDS):
        yield from places(part, (*place, key))


def _columns(value: Sequence[Any], place: Place) -> Iterator[Place]:
    first = value[0]
    if isinstance(first, list) and len({len(each) for each in value if isinstance(each, list)}) > 1:
        return  # rows of one length are records
    for key in first if isinstance(first, dict) else range(len(first)):
        if len(first) <= FIELDS and isinstance(first[key], int | float | str):
            yield (*place, EACH, key)


def _of_text(value: str, place: Place) -> Iterator[Place]:
    if value[:1] in ("[", "{"):
        try:
            yield from places(json.loads(value), (*place, JSON))
        except ValueError:
            pass
        else:
            return
    if len(value.splitlines()) > 1:
        yield (*place, LINES)
    elif len(value.split()) > 1:
        yield (*place, WORDS)


def scalars(value: Any, place: Place = ()) -> Iterator[Place]:
    """Where a value has numbers and texts by a name of their own."""
    if isinstance(value, dict) and len(place) < DEEP:
        for key, part in islice(value.items(), FIELDS):
            yield from scalars(part, (*place, key))
    elif isinstance(value, int | float | str) and not isinstance(value, bool):
        yield place


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths of the numbers of an answer that mean something of their own: fields, and places of short lists."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield path
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from leaves(part, (*path, key))
    elif isinstance(value, list) and len(path) < 2:
        for place in range(len(value)) if len(value) <= 4 else (0, 1, len(value) - 1):
            yield from leaves(value[place], (*path, place))


def common(values: Sequence[Any]) -> list[Place]:
    """The places of lists that all of these values have."""
    found = list(islice(dict.fromkeys(places(values[0])), MOST)) if values else []
    return [place for place in found if all(isinstance(part_of(value, place), list) for value in values)]


def part_of(value: Any, place: Place) -> Any:
    """What stands there; None where there is nothing."""
    try:
        return read(value, place)
    except (LookupError, TypeError, ValueError, AttributeError):
        return None


def spelled(place: Place) -> str:
    """A place as a person would write it."""
    names = {EACH: "[each]", KEYS: "[names]", LINES: "[lines]", WORDS: "[words]", JSON: ""}
    return "".join(names.get(part) or (f"[{part!r}]" if part != JSON else "") for part in place)
