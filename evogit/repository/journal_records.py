"""Journal records as text: an event to a commit message and back, with a version that is never guessed."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any, get_args

from evogit.core import (
    Compared,
    Decision,
    Evaluated,
    Event,
    Forked,
    Halted,
    Proposed,
    RefusedError,
    RepositoryError,
    RunStarted,
    Stopped,
    TaskChanged,
)
from evogit.repository.shapes import MisshapenError, Reader, plain, reader

VERSION = 1

_EVENTS = {event.__struct_defaults__[0]: event for event in get_args(Event)}
"""Name of an event, the default of its first field -> the event."""

_IDS = (
    "candidate",
    "tree",
    "parents",
    "shown",
    "inspirations",
    "rebased_from",
    "best",
    "tactic",
    "evidence",
    "first",
    "a",
    "b",
    "candidates",
    "undoes",
    "commit",
    "entry",
    "reserved",
)
"""Fields that hold ids of Git objects, each one or several, empty where there is none."""

_SEAL = "\nSeal: "
"""What comes before a seal, as trailers of Git do; no record has a second empty line."""

_parsed = json.JSONDecoder().decode
"""JSON as it stands; `json.loads` asks of each text first what it is."""

_IS_ID = re.compile("([0-9a-f]{40})?").fullmatch


def encode(event: Event, seq: int, ms: int = 0) -> str:
    """The message of the journal commit for `event`: a line for people, an empty line, one line of JSON."""
    record = {"evogit": VERSION, "seq": seq, **({"ms": ms} if ms else {}), "event": event.event, **plain(event)}
    return f"{_subject(event)}\n\n{json.dumps(record, separators=(',', ':'), ensure_ascii=True, allow_nan=False)}\n"


def sealed(message: str, seal: str) -> str:
    """The same record with a seal behind it."""
    return f"{message}{_SEAL}{seal}\n"


def unsealed(message: str) -> tuple[str, str]:
    """A record and its seal, empty where it has none."""
    record, found, seal = message.rpartition(_SEAL)
    return (record, seal.rstrip("\n")) if found else (message, "")


def decode(message: str) -> tuple[Event, int, int]:
    """The event, its clock, and the milliseconds of the second in which it was written.

    Raises:
        RefusedError: the record was written by a newer version.
        RepositoryError: the message is not a journal record.
    """
    try:
        record: dict[str, Any] = _parsed(unsealed(message)[0].partition("\n\n")[2])
        version, seq, name = record.pop("evogit"), int(record.pop("seq")), str(record.get("event"))
        ms = int(record.pop("ms", 0))
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise RepositoryError(f"expected a journal record, got {message[:80]!r}; see docs/design/journal.md") from error
    if version != VERSION or name not in _EVENTS:
        raise RefusedError(
            f"expected a journal record of version {VERSION}, got version {version}, event {name!r}; "
            "it was written by a newer evogit: upgrade this one"
        )
    try:
        event: Event = _reader(name)(record)
    except MisshapenError as error:
        raise RepositoryError(f"damaged journal record {message[:80]!r}: {error}") from error
    if wrong := _wrong(event, record):
        raise RepositoryError(f"damaged journal record {message[:80]!r}: {wrong}; see docs/design/journal.md")
    return event, seq, ms


@cache
def _reader(name: str) -> Reader:
    """What makes an event of its fields; put together once it is asked for."""
    return reader(_EVENTS[name])


@cache
def _ids_of(name: str) -> list[str]:
    """The fields of an event that hold ids."""
    return [each for each in _EVENTS[name].__struct_fields__ if each in _IDS]


def _wrong(event: Event, record: dict[str, Any]) -> str:
    """What no engine would have written although it has the right shape; empty where all is well."""
    for field in _ids_of(event.event):
        if value := record.get(field):
            for each in (value,) if isinstance(value, str) else value:
                if not _IS_ID(each):
                    return f"expected ids of 40 hex digits as {field}, got {each!r}"
    if isinstance(event, (RunStarted, TaskChanged)) and sum(metric.primary for metric in event.metrics) != 1:
        return "expected one primary metric"
    if isinstance(event, Proposed) and event.operator in ("merge", "graft") and len(event.parents) != 2:
        return f"expected two parents of a {event.operator}, got {len(event.parents)}"
    if isinstance(event, Decision) and event.kind in ("promote", "prune", "land") and not event.candidates:
        return f"expected a candidate to {event.kind}, got none"
    return ""


def _subject(event: Event) -> str:
    match event:
        case RunStarted():
            return f"run-started: {event.task}"
        case Proposed():
            return f"proposed: {event.candidate[:10]} by {event.agent}"
        case Evaluated():
            return f"evaluated: {event.candidate[:10]} {event.evaluation.split} {event.evaluation.status}"
        case Decision():
            return f"decision: {event.kind} by {event.by}"
        case Compared():
            return f"verdict: {event.a[:10]} and {event.b[:10] or 'half of it'} by {event.judge}"
        case Forked():
            return f"forked: from {event.run}"
        case TaskChanged():
            return f"task-changed: by {event.by}"
        case Halted():
            return f"halted: {event.reason}"
        case Stopped():
            return f"stopped: {event.reason}"
        case _:
            return f"{event.event}: {event.agent}"
