"""Journal records as text: an event to a commit message and back, with a version that is never guessed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Any, get_args

from msgspec import NODEFAULT, Meta, Struct, ValidationError, convert
from msgspec.structs import fields

from evogit.core import MAX_INT, Evaluation, RefusedError, RepositoryError
from evogit.events import (
    Adopted,
    Compared,
    Decision,
    Entry,
    Evaluated,
    Event,
    Forked,
    Halted,
    Lesson,
    Proposed,
    ReviewAsked,
    Reviewed,
    RunStarted,
    StageBegun,
    Stopped,
    TaskChanged,
)
from evogit.text import whole

VERSION = 1

MAX_RECORD_CHARS = 1 << 26  # characters of a record; a worker's largest answer is smaller
MAX_DEPTH = 32  # brackets within each other; records of ours have five
MAX_NAME_CHARS = 2_000  # characters of titles, names and keys; what is longer is cut as it is read
MAX_TEXT_CHARS = 20_000  # the same for the fields `TEXTS`, which hold what people, models and programs wrote
TEXTS = frozenset({"goal", "reason", "text", "words", "detail", "failure", "again", "instead"})
MAX_TIME = 250_000_000_000  # seconds since the epoch: the year 9892, as timestamps end with 9999 in every time zone

_EVENTS = {event.__struct_defaults__[0]: event for event in get_args(Event)}
"""Name of an event, the default of its first field -> the event."""

_SEAL = "\nSeal: "  # what comes before a seal, as trailers of Git do; no record has a second empty line


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number")


_parsed = json.JSONDecoder(parse_constant=_refuse_constant).decode  # `json.loads` asks of each text first what it is
RUN_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?!\.|lock$|$))*")  # what a run may be called
AGENT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")  # one part of a ref
_POPULATION = re.compile(r"refs/(?:heads/evogit/(?P<plain>[^/]+)/|evogit/(?P<hidden>[^/]+)/agents/)")

_has_surrogate = re.compile(r"\\u[dD][89a-fA-F]").search  # whether this JSON may say a half of a surrogate pair

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
    return [
        (each.name, each.default if each.default_factory is NODEFAULT else each.default_factory())
        for each in fields(kind)
    ]


def _with_ints(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: each if key == "settings" else _with_ints(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_with_ints(each) for each in value]
    is_whole = type(value) is float and abs(value) <= MAX_INT and value == int(value)
    return int(value) if is_whole else value


def encode(event: Event, seq: int, ms: int = 0) -> str:
    """Return a commit message: a line for people, a line of JSON. Raises RepositoryError: it could not be read back."""
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
    """Return the entry of a commit. Raises RefusedError: of a newer version; RepositoryError: it is not a record."""
    if not 0 <= when <= MAX_TIME:
        raise RepositoryError(f"damaged journal entry {name}: expected a time from 1970 to the year 9892, got {when}")
    event, seq, ms = decode(message)
    return Entry(id=name, host=host, seq=seq, time=when, event=event, ms=ms)


def decode(message: str) -> tuple[Event, int, int]:
    """Return event, clock, milliseconds. Raises RefusedError: of a newer version; RepositoryError: no record."""
    try:
        return _decoded(message)
    except (ValueError, KeyError, AttributeError, TypeError, OverflowError, RecursionError) as error:
        raise RepositoryError(f"expected a journal record, got {message[:80]!r}; see docs/design/journal.md") from error


def evaluation_of(told: Any) -> Evaluation:
    """Read an evaluation from elsewhere as in a record. Raises RepositoryError: no record can hold it."""
    record = {"evogit": VERSION, "seq": 0, "event": "evaluated", "candidate": "", "evaluation": told}
    event, *_ = decode(f"\n\n{json.dumps(record)}")
    assert isinstance(event, Evaluated)
    return event.evaluation


def _decoded(message: str) -> tuple[Event, int, int]:
    text = unsealed(message)[0].partition("\n\n")[2]
    if wrong := _too_large(text):
        raise RepositoryError(f"damaged journal record {message[:80]!r}: {wrong}")
    record: dict[str, Any] = _parsed(text)
    # a name may be too long if one lies between two quotes, or has quotes in it
    long = len(text) > MAX_NAME_CHARS and ('\\"' in text or max(map(len, text.split('"'))) > MAX_NAME_CHARS)
    if long or _has_surrogate(text):
        record = _tidied(record, MAX_NAME_CHARS)
    version, seq, name = record.pop("evogit"), int(record.pop("seq")), str(record.get("event"))
    ms = int(record.pop("ms", 0))
    if version != VERSION or name not in _EVENTS:
        raise RefusedError(
            f"expected a journal record of version {VERSION}, got version {version!r:.80}, event {name[:80]!r}; "
            "it was written by a newer evogit: upgrade this one"
        )
    try:
        try:
            event: Event = convert(record, _EVENTS[name])
        except ValidationError:  # early records have `7.0` for 7
            event = convert(_with_ints(record), _EVENTS[name])
    except ValidationError as error:
        raise RepositoryError(f"damaged journal record {message[:80]!r}: {error}") from error
    check = _CHECKS.get(type(event))
    wrong = check(event) if check else ""
    if not wrong and not (0 <= seq <= MAX_INT and 0 <= ms < 1000):
        wrong = f"the clock is {seq}.{ms}"
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
    wrong = f"expected letters, digits, - and _ as an agent's name, got {event.agent!r:.80}"
    return "" if AGENT_NAME.fullmatch(event.agent) else wrong


def _odd_decision(event: Decision) -> str:
    if event.kind in ("promote", "prune", "land") and not event.candidates:
        return f"expected a candidate to {event.kind}, got none"
    if event.kind == "land" and not event.branch.startswith("refs/heads/evogit/"):
        return f"expected a branch below refs/heads/evogit/ for what lands, got {event.branch!r:.80}"
    return ""


_CHECKS: dict[type, Callable[[Any], str]] = {
    RunStarted: lambda event: _odd_metrics(event) or _odd_population(event) or odd_settings(event.settings, MAX_DEPTH),
    TaskChanged: _odd_metrics,
    Forked: _odd_population,
    Proposed: _odd_parents,
    Adopted: _odd_agent,
    Decision: _odd_decision,
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
        case Reviewed():
            return f"reviewed: {event.candidate[:10]} {event.verdict} by {event.model}"
        case Forked():
            return f"forked: from {event.run}"
        case TaskChanged() | Lesson():
            return f"{event.event}: by {event.by}"
        case Halted():
            return f"halted: {event.reason}"
        case Stopped():
            return f"stopped: {event.reason}"
        case StageBegun() | ReviewAsked():
            return f"{event.event}: by {event.engine}"
        case _:
            return f"{event.event}: {event.agent}"


MAX_SETTING = 1e30  # numbers among a run's settings are smaller, in either direction
MAX_AGENTS = 10_000  # of all kinds together
Limit = Annotated[float, Meta(gt=0)]  # a setting that bounds a run


class ToldAgents(Struct, frozen=True):
    """The agents of one kind in a population; each of the `model`, joined by commas, is another one."""

    kind: str
    model: str = ""
    count: Annotated[int, Meta(ge=1, le=MAX_AGENTS)] = 1
    role: Annotated[str, Meta(pattern=r"\A[\w.-]{0,60}\Z")] = ""
    words: Annotated[str, Meta(max_length=4_000)] = ""


class ToldSettings(Struct, frozen=True, kw_only=True):
    """The settings that anything reads and their types; a later version may tell more."""

    population: tuple[ToldAgents, ...] = ()
    evaluations: Limit | None = None
    proposals: Limit | None = None
    minutes: Limit | None = None
    dollars: Limit | None = None
    tokens: Limit | None = None
    calls: Limit | None = None
    patience: Limit | None = None
    confirmations: Limit | None = None
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
    reviewer: str = ""
    agreed: tuple[str, ...] = ()


def odd_settings(settings: Mapping[str, Any], depth: int) -> str:
    """Return what no engine would have told, empty if there is nothing; values lie at most `depth` brackets deep."""
    if not _is_plain(dict(settings), depth):
        return "expected settings of texts and finite numbers"
    try:
        told = convert(dict(settings), ToldSettings)
    except ValidationError as error:
        return f"settings: {error}"
    if told.grace is not None and not 0 <= told.grace < 60 * (told.minutes or 0.0):
        return f"expected grace of 0 seconds or more, and less than minutes, got {told.grace:g}"
    for models in (each.model.split(",") for each in told.population):
        if len(models) > 1 and not (all(models) and len(set(models)) == len(models)):
            return f"expected different models, each with a name, got {','.join(models)!r:.80}"
    if sum(each.count for each in told.population) > MAX_AGENTS:
        return f"expected at most {MAX_AGENTS:,} agents"
    return ""


def _is_plain(value: Any, depth: int) -> bool:
    if isinstance(value, dict | list):
        values = value.values() if isinstance(value, dict) else value
        return depth > 0 and all(_is_plain(each, depth - 1) for each in values)
    return not isinstance(value, int | float) or abs(value) < MAX_SETTING
