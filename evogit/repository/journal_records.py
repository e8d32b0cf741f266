"""Journal records as text: an event to a commit message and back, with a version that is never guessed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, get_args

from evogit.core import (
    Adopted,
    Compared,
    Decision,
    Entry,
    Evaluated,
    Event,
    Forked,
    Halted,
    Proposed,
    RefusedError,
    RepositoryError,
    Reserved,
    RunStarted,
    Spent,
    Stopped,
    TaskChanged,
)
from evogit.repository.shapes import MAX_INT, MisshapenError, Reader, plain, reader

VERSION = 1

MAX_RECORD_CHARS = 1 << 26
"""Characters of a record; a worker's largest answer is smaller."""

MAX_DEPTH = 32
"""Brackets within each other; records of ours have five."""

MAX_NAME_CHARS = 2_000
"""Characters of titles, names and keys; what is longer is cut as it is read."""

MAX_TEXT_CHARS = 100_000
"""The same for the fields `TEXTS`, which hold what people, models and programs wrote."""

TEXTS = frozenset({"goal", "reason", "text", "detail", "failure", "again", "instead"})

MAX_TIME = 250_000_000_000
"""Seconds since the epoch: the year 9892, as timestamps end with 9999 in every time zone."""

MIN_SECONDS, MAX_SECONDS = -86_400.0, 1e10
"""Durations; a clock may have been put back."""

MAX_TOKENS = 10**12
MAX_DOLLARS = 1e9
"""Of one attempt to ask a model; neither is negative."""

MAX_SETTING = 1e30
"""Numbers among a run's settings are smaller, in either direction."""

MAX_REPEATS = 1_000
"""As in a task's settings."""

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


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number")


_parsed = json.JSONDecoder(parse_constant=_refuse_constant).decode
"""JSON as it stands; `json.loads` asks of each text first what it is."""

_IS_ID = re.compile("([0-9a-f]{40})?").fullmatch

RUN_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?!\.|lock$|$))*")
"""What a run may be called."""

AGENT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
"""What an agent with an individual may be called: one part of a ref."""

_POPULATION = re.compile(r"refs/(?:heads/evogit/(?P<plain>[^/]+)/|evogit/(?P<hidden>[^/]+)/agents/)")

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]')


def encode(event: Event, seq: int, ms: int = 0) -> str:
    """The message of the journal commit for `event`: a line for people, an empty line, one line of JSON.

    Raises:
        RepositoryError: it could not be read back.
    """
    record = {"evogit": VERSION, "seq": seq, **({"ms": ms} if ms else {}), "event": event.event, **plain(event)}
    text = json.dumps(record, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    message = f"{_subject(event)}\n\n{text}\n"
    decode(message)
    return message


def sealed(message: str, seal: str) -> str:
    """The same record with a seal behind it."""
    return f"{message}{_SEAL}{seal}\n"


def unsealed(message: str) -> tuple[str, str]:
    """A record and its seal, empty where it has none."""
    record, found, seal = message.rpartition(_SEAL)
    return (record, seal.rstrip("\n")) if found else (message, "")


def entry(name: str, host: str, when: int, message: str) -> Entry:
    """The journal entry that a commit is; `when` is its committer's time.

    Raises:
        RefusedError: the record was written by a newer version.
        RepositoryError: it is not a journal record.
    """
    if not 0 <= when <= MAX_TIME:
        raise RepositoryError(f"damaged journal entry {name}: expected a time from 1970 to the year 9892, got {when}")
    event, seq, ms = decode(message)
    return Entry(id=name, host=host, seq=seq, time=when, event=event, ms=ms)


def decode(message: str) -> tuple[Event, int, int]:
    """The event, its clock, and the milliseconds of the second in which it was written.

    Raises:
        RefusedError: the record was written by a newer version.
        RepositoryError: the message is not a journal record.
    """
    try:
        return _decoded(message)
    except (ValueError, KeyError, AttributeError, TypeError, OverflowError, RecursionError) as error:
        raise RepositoryError(f"expected a journal record, got {message[:80]!r}; see docs/design/journal.md") from error


def _decoded(message: str) -> tuple[Event, int, int]:
    text = unsealed(message)[0].partition("\n\n")[2]
    if wrong := _too_large(text):
        raise RepositoryError(f"damaged journal record {message[:80]!r}: {wrong}")
    record: dict[str, Any] = _parsed(text)
    if len(text) > MAX_NAME_CHARS:
        record = _shortened(record, MAX_NAME_CHARS)
    version, seq, name = record.pop("evogit"), int(record.pop("seq")), str(record.get("event"))
    ms = int(record.pop("ms", 0))
    if version != VERSION or name not in _EVENTS:
        raise RefusedError(
            f"expected a journal record of version {VERSION}, got version {version!r:.80}, event {name[:80]!r}; "
            "it was written by a newer evogit: upgrade this one"
        )
    try:
        event: Event = _reader(name)(record)
    except MisshapenError as error:
        raise RepositoryError(f"damaged journal record {message[:80]!r}: {error}") from error
    wrong = _wrong(event, record) or ("" if 0 <= seq <= MAX_INT and 0 <= ms < 1000 else f"the clock is {seq}.{ms}")
    if wrong:
        raise RepositoryError(f"damaged journal record {message[:80]!r}: {wrong}; see docs/design/journal.md")
    return event, seq, ms


def _too_large(text: str) -> str:
    """Why a record is not parsed; empty if it can be. Few brackets are not deep, so most records are not scanned."""
    if len(text) > MAX_RECORD_CHARS:
        return f"expected at most {MAX_RECORD_CHARS:,} characters, got {len(text):,}"
    if text.count("[") + text.count("{") <= 8 * MAX_DEPTH:
        return ""
    depth = 0
    for token in _TOKEN.finditer(text):
        depth += 1 if token[0] in "[{" else -1 if token[0] in "]}" else 0
        if depth > MAX_DEPTH:
            return f"expected at most {MAX_DEPTH} brackets within each other"
    return ""


def _shortened(value: Any, limit: int) -> Any:
    """The value with every text and key cut to what its field may have."""
    if type(value) is str:
        return value if len(value) <= limit else f"{value[: limit - 1]}…"
    if type(value) is list:
        return [_shortened(each, limit) for each in value]
    if type(value) is not dict:
        return value
    return {
        _shortened(key, MAX_NAME_CHARS): _shortened(each, MAX_TEXT_CHARS if key in TEXTS else MAX_NAME_CHARS)
        for key, each in value.items()
    }


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
    return next(_faults(event), "")


def _faults(event: Event) -> Iterator[str]:
    match event:
        case RunStarted() | TaskChanged() if sum(metric.primary for metric in event.metrics) != 1:
            yield "expected one primary metric"
        case RunStarted() | Forked() if not run_of_population(event.population):
            yield f"expected refs/heads/evogit/RUN/ or refs/evogit/RUN/agents/ as population, got {event.population!r}"
        case RunStarted():
            if event.repeats > MAX_REPEATS:
                yield f"expected at most {MAX_REPEATS} repeats, got {event.repeats}"
            if not _is_plain(event.settings, MAX_DEPTH):
                yield "expected settings of texts and finite numbers"
        case Proposed():
            yield from _odd_parents(event)
        case Adopted() if not AGENT_NAME.fullmatch(event.agent):
            yield f"expected letters, digits, - and _ as an agent's name, got {event.agent!r:.80}"
        case Decision(kind="promote" | "prune" | "land") if not event.candidates:
            yield f"expected a candidate to {event.kind}, got none"
        case Decision(kind="land") if not event.branch.startswith("refs/heads/evogit/"):
            yield f"expected a branch below refs/heads/evogit/ for what lands, got {event.branch!r:.80}"
        case Evaluated():
            cost = event.evaluation.cost
            if not (MIN_SECONDS <= cost.wall <= MAX_SECONDS and MIN_SECONDS <= cost.cpu <= MAX_SECONDS):
                yield f"expected seconds as costs, got {cost.wall} and {cost.cpu}"
        case Reserved() | Spent():
            yield from _odd_amounts(event)
        case Halted() if not MIN_SECONDS <= event.seconds <= MAX_SECONDS:
            yield f"expected seconds, got {event.seconds}"


def run_of_population(prefix: str) -> str:
    """The run whose agents' refs have this prefix; empty if it is not such a prefix."""
    found = _POPULATION.fullmatch(prefix)
    name = (found["plain"] or found["hidden"]) if found else ""
    return name if RUN_NAME.fullmatch(name) else ""


def _odd_parents(event: Proposed) -> Iterator[str]:
    if event.operator in ("merge", "graft") and len(event.parents) != 2:
        yield f"expected two parents of a {event.operator}, got {len(event.parents)}"
    if event.operator == "seed" and event.parents:
        yield f"expected a seed without parents, got {len(event.parents)}"
    if event.candidate in event.parents:
        yield "expected other candidates as parents"


def _odd_amounts(event: Reserved | Spent) -> Iterator[str]:
    cached, seconds = (event.cached, event.seconds) if isinstance(event, Spent) else (0, 0.0)
    if max(event.prompt, event.completion, cached) > MAX_TOKENS:
        yield f"expected at most {MAX_TOKENS} tokens, got {event.prompt}, {cached} and {event.completion}"
    if not 0 <= (event.dollars or 0.0) <= MAX_DOLLARS:
        yield f"expected dollars from 0 to {MAX_DOLLARS:g}, got {event.dollars}"
    if not MIN_SECONDS <= seconds <= MAX_SECONDS:
        yield f"expected seconds, got {seconds}"


def _is_plain(value: Any, depth: int) -> bool:
    """Whether a value of settings is not too deep, and its numbers are finite."""
    if isinstance(value, dict | list):
        values = value.values() if isinstance(value, dict) else value
        return depth > 0 and all(_is_plain(each, depth - 1) for each in values)
    return not isinstance(value, int | float) or abs(value) < MAX_SETTING


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
