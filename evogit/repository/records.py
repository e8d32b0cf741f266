"""Journal records as text: an event to a commit message and back, with a version that is never guessed."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from evogit.core import (
    Compared,
    Decision,
    Evaluated,
    Event,
    Forked,
    Proposed,
    RefusedError,
    RepositoryError,
    RunStarted,
    Stopped,
    TaskChanged,
)

VERSION = 1

_ADAPTER: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="event")])
_KNOWN = frozenset(_ADAPTER.json_schema()["discriminator"]["mapping"])


def encode(event: Event, seq: int) -> str:
    """The message of the journal commit for `event`: a line for people, an empty line, one line of JSON."""
    fields = _ADAPTER.dump_python(event, mode="json", exclude_defaults=True)
    record = {"evogit": VERSION, "seq": seq, "event": event.event, **fields}
    return f"{_subject(event)}\n\n{json.dumps(record, separators=(',', ':'), ensure_ascii=True, allow_nan=False)}\n"


def decode(message: str) -> tuple[Event, int]:
    """The event and its clock.

    Raises:
        RefusedError: the record was written by a newer version.
        RepositoryError: the message is not a journal record.
    """
    try:
        record: dict[str, Any] = json.loads(message.partition("\n\n")[2])
        version, seq = record.pop("evogit"), record.pop("seq")
    except (ValueError, KeyError, AttributeError) as error:
        raise RepositoryError(f"expected a journal record, got {message[:80]!r}; see docs/design/journal.md") from error
    if version != VERSION or record.get("event") not in _KNOWN:
        raise RefusedError(
            f"expected a journal record of version {VERSION}, got version {version}, event {record.get('event')!r}; "
            "it was written by a newer evogit: upgrade this one"
        )
    try:
        return _ADAPTER.validate_python(record), int(seq)
    except ValidationError as error:
        raise RepositoryError(f"damaged journal record: {error}") from error


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
        case Stopped():
            return f"stopped: {event.reason}"
        case _:
            return f"{event.event}: {event.agent}"
