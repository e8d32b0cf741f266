"""Journal records as text: an event to a commit message and back, with a version that is never guessed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeVar, get_args

from msgspec import NODEFAULT, Struct, ValidationError, convert
from msgspec.structs import fields

from evogit.core import (
    MAX_INT,
    Adopted,
    Compared,
    Decision,
    Entry,
    Evaluated,
    Evaluation,
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
from evogit.text import whole

T = TypeVar("T")

VERSION = 1

MAX_RECORD_CHARS = 1 << 26
"""Characters of a record; a worker's largest answer is smaller."""

MAX_DEPTH = 32
"""Brackets within each other; records of ours have five."""

MAX_NAME_CHARS = 2_000
"""Characters of titles, names and keys; what is longer is cut as it is read."""

MAX_TEXT_CHARS = 20_000
"""The same for the fields `TEXTS`, which hold what people, models and programs wrote."""

TEXTS = frozenset({"goal", "reason", "text", "detail", "failure", "again", "instead"})

MAX_TIME = 250_000_000_000
"""Seconds since the epoch: the year 9892, as timestamps end with 9999 in every time zone."""

MIN_SECONDS, MAX_SECONDS = -86_400.0, 1e10
"""Durations; a clock may have been put back."""

MAX_TOKENS = 10**12
MAX_DOLLARS = 1e9
"""Of one attempt to ask a model; neither is negative."""

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

_has_surrogate = re.compile(r"\\u[dD][89a-fA-F]").search
"""Whether this JSON may say a half of a surrogate pair."""

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]')


_PLAIN = frozenset({str, int, float, bool, type(None)})


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


def shaped(record: Any, kind: type[T]) -> T:
    """Return a parsed record as its type; a later version may have more keys, an early one wrote `7.0` for 7.

    Raises:
        ValidationError: a value is not of the type of its field, or out of its range.
    """
    try:
        return convert(record, kind)
    except ValidationError:
        return convert(_with_ints(record), kind)


def _with_ints(value: Any) -> Any:
    """The value with each float that is a whole number as an int."""
    if isinstance(value, dict):
        return {key: each if key == "settings" else _with_ints(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_with_ints(each) for each in value]
    is_whole = type(value) is float and abs(value) <= MAX_INT and value == int(value)
    return int(value) if is_whole else value


def encode(event: Event, seq: int, ms: int = 0) -> str:
    """The message of the journal commit for `event`: a line for people, an empty line, one line of JSON.

    Raises:
        RepositoryError: it could not be read back.
    """
    record = {"evogit": VERSION, "seq": seq, **({"ms": ms} if ms else {}), "event": event.event, **plain(event)}
    text = json.dumps(record, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    message = f"{whole(_subject(event))}\n\n{text}\n"
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


def evaluation_of(told: Any) -> Evaluation:
    """Read an evaluation that came from elsewhere as it would be read in a record.

    Raises:
        RepositoryError: no record can hold it.
    """
    record = {"evogit": VERSION, "seq": 0, "event": "evaluated", "candidate": "", "evaluation": told}
    event, *_ = decode(f"\n\n{json.dumps(record)}")
    assert isinstance(event, Evaluated)
    return event.evaluation


def _decoded(message: str) -> tuple[Event, int, int]:
    text = unsealed(message)[0].partition("\n\n")[2]
    if wrong := _too_large(text):
        raise RepositoryError(f"damaged journal record {message[:80]!r}: {wrong}")
    record: dict[str, Any] = _parsed(text)
    if _has_long_text(text) or _has_surrogate(text):
        record = _tidied(record, MAX_NAME_CHARS)
    version, seq, name = record.pop("evogit"), int(record.pop("seq")), str(record.get("event"))
    ms = int(record.pop("ms", 0))
    if version != VERSION or name not in _EVENTS:
        raise RefusedError(
            f"expected a journal record of version {VERSION}, got version {version!r:.80}, event {name[:80]!r}; "
            "it was written by a newer evogit: upgrade this one"
        )
    try:
        event: Event = shaped(record, _EVENTS[name])
    except ValidationError as error:
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


def _has_long_text(text: str) -> bool:
    """Return whether a text in this JSON may be longer than names may be: between two quotes, or with quotes in it."""
    if len(text) <= MAX_NAME_CHARS:
        return False
    return '\\"' in text or max(map(len, text.split('"'))) > MAX_NAME_CHARS


def _tidied(value: Any, limit: int) -> Any:
    """The value with every text and key cut to what its field may have, and writable as UTF-8."""
    if type(value) is str:
        return whole(value if len(value) <= limit else f"{value[: limit - 1]}…")
    if type(value) is list:
        return [_tidied(each, limit) for each in value]
    if type(value) is not dict:
        return value
    return {
        _tidied(key, MAX_NAME_CHARS): _tidied(each, MAX_TEXT_CHARS if key in TEXTS else MAX_NAME_CHARS)
        for key, each in value.items()
    }


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
    check = _CHECKS.get(type(event))
    return check(event) if check else ""


def _odd_start(event: RunStarted) -> str:
    if odd := _odd_metrics(event) or _odd_population(event) or odd_settings(event.settings, MAX_DEPTH):
        return odd
    return f"expected at most {MAX_REPEATS} repeats, got {event.repeats}" if event.repeats > MAX_REPEATS else ""


def _odd_metrics(event: RunStarted | TaskChanged) -> str:
    return "" if sum(metric.primary for metric in event.metrics) == 1 else "expected one primary metric"


def _odd_population(event: RunStarted | Forked) -> str:
    if run_of_population(event.population):
        return ""
    return f"expected refs/heads/evogit/RUN/ or refs/evogit/RUN/agents/ as population, got {event.population!r:.80}"


def run_of_population(prefix: str) -> str:
    """The run whose agents' refs have this prefix; empty if it is not such a prefix."""
    found = _POPULATION.fullmatch(prefix)
    name = (found["plain"] or found["hidden"]) if found else ""
    return name if RUN_NAME.fullmatch(name) else ""


def _odd_parents(event: Proposed) -> str:
    if event.operator in ("merge", "graft") and len(event.parents) != 2:
        return f"expected two parents of a {event.operator}, got {len(event.parents)}"
    if event.operator == "seed" and event.parents:
        return f"expected a seed without parents, got {len(event.parents)}"
    return "expected other candidates as parents" if event.candidate in event.parents else ""


def _odd_agent(event: Adopted) -> str:
    if AGENT_NAME.fullmatch(event.agent):
        return ""
    return f"expected letters, digits, - and _ as an agent's name, got {event.agent!r:.80}"


def _odd_decision(event: Decision) -> str:
    if event.kind in ("promote", "prune", "land") and not event.candidates:
        return f"expected a candidate to {event.kind}, got none"
    if event.kind == "land" and not event.branch.startswith("refs/heads/evogit/"):
        return f"expected a branch below refs/heads/evogit/ for what lands, got {event.branch!r:.80}"
    return ""


def _odd_cost(event: Evaluated) -> str:
    cost = event.evaluation.cost
    return _odd_seconds(cost.wall) or _odd_seconds(cost.cpu)


def _odd_amounts(event: Reserved | Spent) -> str:
    if max(event.prompt, event.completion) > MAX_TOKENS:
        return f"expected at most {MAX_TOKENS} tokens, got {event.prompt} and {event.completion}"
    if event.dollars is not None and not 0 <= event.dollars <= MAX_DOLLARS:
        return f"expected dollars from 0 to {MAX_DOLLARS:g}, got {event.dollars}"
    if isinstance(event, Spent):
        many = f"expected at most {MAX_TOKENS} tokens, got {event.cached}" if event.cached > MAX_TOKENS else ""
        return many or _odd_seconds(event.seconds)
    return ""


def _odd_seconds(seconds: float) -> str:
    return "" if MIN_SECONDS <= seconds <= MAX_SECONDS else f"expected seconds, got {seconds}"


_CHECKS: dict[type, Callable[[Any], str]] = {
    RunStarted: _odd_start,
    TaskChanged: _odd_metrics,
    Forked: _odd_population,
    Proposed: _odd_parents,
    Adopted: _odd_agent,
    Decision: _odd_decision,
    Evaluated: _odd_cost,
    Reserved: _odd_amounts,
    Spent: _odd_amounts,
    Halted: lambda event: _odd_seconds(event.seconds),
}
"""Event -> what is wrong with its values, empty where nothing is."""


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


MAX_SETTING = 1e30
"""Numbers among a run's settings are smaller, in either direction."""

MAX_AGENTS = 10_000
"""Of all kinds together."""

ABOVE_ZERO = ("evaluations", "proposals", "minutes", "dollars", "tokens", "patience", "confirmations")
"""Settings that bound a run."""


class ToldSettings(Struct, frozen=True, kw_only=True):
    """The settings that anything reads and their types; a later version may tell more."""

    population: tuple[Any, ...] = ()
    evaluations: float | None = None
    proposals: float | None = None
    minutes: float | None = None
    dollars: float | None = None
    tokens: float | None = None
    patience: float | None = None
    confirmations: float | None = None
    target: float | None = None
    grace: float | None = None
    jobs: float = 1
    seed: float = 0
    beyond: bool = False
    count_repeats: bool = False
    deterministic: bool = False
    join: bool = False
    detached: bool = False
    selector: str = ""
    split: str = ""
    sandbox: str = ""
    panel: tuple[str, ...] = ()
    agreed: tuple[str, ...] = ()


def odd_settings(settings: Mapping[str, Any], depth: int) -> str:
    """Return what no engine would have told, empty if there is nothing; values lie at most `depth` brackets deep."""
    if not _is_plain(dict(settings), depth):
        return "expected settings of texts and finite numbers"
    try:
        told = shaped(dict(settings), ToldSettings)
    except ValidationError as error:
        return f"settings: {error}"
    for name in ABOVE_ZERO:
        limit = getattr(told, name)
        if limit is not None and not limit > 0:
            return f"expected a number above 0 as the limit {name}, got {limit!r:.80}"
    if told.grace is not None and not 0 <= told.grace < 60 * (told.minutes or 0.0):
        return f"expected grace of 0 seconds or more, and less than minutes, got {told.grace:g}"
    if not all(map(_is_spec, told.population)):
        return f"expected kinds, models and counts as population, got {told.population!r:.80}"
    if sum(spec.get("count", 1) for spec in told.population) > MAX_AGENTS:
        return f"expected at most {MAX_AGENTS:,} agents"
    return ""


def _is_spec(spec: Any) -> bool:
    """Return whether this says how many agents there are of a kind, and which models each asks, every one once."""
    if type(spec) is not dict or type(spec.get("kind")) is not str:
        return False
    model, count = spec.get("model", ""), spec.get("count", 1)
    if type(model) is not str or type(count) is not int or not 0 < count <= MAX_AGENTS:
        return False
    models = model.split(",")
    return len(models) == 1 or (all(models) and len(set(models)) == len(models))


def _is_plain(value: Any, depth: int) -> bool:
    """Return whether a value of settings is not too deep, and its numbers are finite."""
    if isinstance(value, dict | list):
        values = value.values() if isinstance(value, dict) else value
        return depth > 0 and all(_is_plain(each, depth - 1) for each in values)
    return not isinstance(value, int | float) or abs(value) < MAX_SETTING
