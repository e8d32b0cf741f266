"""Requests of programs and answers of endpoints, read and counted in a process of its own (`reader_main.py`)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from evogit.llm import estimate_tokens
from evogit.llm.bounds import PREAMBLE, most_tokens
from evogit.llm.gateway.events import event_data, read_json, respelt
from evogit.llm.gateway.protocols import DIALECTS, Told, attachments

LONGEST_READING = 20.0
"""Seconds in which something must be read, by the clock; the process has as many of CPU. What takes longer is made to.
"""


class UnreadableError(Exception):
    """An unreadable message, with the reason, and HTTP's status if it is a request."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def head(told: Mapping[str, Any], size: int) -> bytes:
    """The line before a content of so many bytes."""
    return json.dumps({**told, "bytes": size}).encode() + b"\n"


PICTURE = 1500  # tokens that a picture comes to, about; its base64 says nothing about that
LONGEST_REQUEST = 8_000_000  # bytes of a request's body; a whole context of a million tokens, or a dozen pictures
LEAST_THINKING = 1024  # tokens of a budget for thinking that endpoints accept

Facts = dict[str, Any]


class Asked(Struct, frozen=True, kw_only=True):
    """The facts of a request that the engine needs; `content` is sent but for the fields that depend on the limits."""

    model: str  # by which name the program asks for it
    prompt: int  # more tokens than which it cannot have
    estimate: int  # how many it has, about
    size: int  # bytes of its text
    unbounded: str  # what in it has a cost that nobody can tell beforehand; empty where nothing has
    reply: int | None  # the tokens of the reply that the program asks for, None if it does not say
    ceilings: list[str]  # the names of fields in which it says so
    thinking: Facts  # what it says of thinking, which counts among the tokens of the reply
    quiet: bool  # whether it did not ask for the usage of a stream
    content: bytes = b""

    def filled(self, ceiling: int | None, names: list[str]) -> bytes:
        """What is sent with no more than so many tokens of a reply."""
        more: Facts = {} if ceiling is None else dict.fromkeys(names, ceiling)
        more |= {name: told for name, value in self.thinking.items() if (told := _within(value, ceiling))}
        return self.content if not more else self.content[:-1] + b", " + json.dumps(more).encode()[1:]


def _within(value: Any, ceiling: int | None) -> Any:
    """What is said of thinking, with a budget that leaves a quarter of the ceiling; None where that is too little."""
    if ceiling is None or not isinstance(value, dict):
        return value
    for name in ("budget_tokens", "max_tokens"):
        asked = value.get(name)
        if name in value and not (type(asked) is int and asked < ceiling):
            if ceiling * 3 // 4 < LEAST_THINKING:
                return None
            value = {**value, name: ceiling * 3 // 4}
    return value


def read_request(path: str, models: Mapping[str, str], body: bytes) -> Asked:
    """Read a request; `models`: name -> the endpoint's. Raises UnreadableError: it is not passed on."""
    dialect, said = DIALECTS[path], _object(body)
    model = str(said.get("model"))
    if model not in models:
        known = ", ".join(models)
        raise UnreadableError(403, f"expected one of the models {known}; got {model[:80]!r}")
    found = list(attachments(said))
    if place := next((each.text for each in found if each.elsewhere), ""):
        raise UnreadableError(403, f"expected files and pictures in the request itself, got one at {place[:80]!r}")
    if refused := dialect.refusal(said):
        raise UnreadableError(403, refused)
    options = said.get("stream_options")
    kept = dialect.restrict(said, models[model])
    thinking = {name: kept.pop(name) for name in dialect.thinking if name in kept}
    ceilings = [name for name in dialect.limits if name in kept]
    asked = [value for name in ceilings if type(value := kept.pop(name)) is int and value > 0]
    content = json.dumps(kept, ensure_ascii=False).encode(errors="replace")
    text = json.dumps({**kept, **thinking}, ensure_ascii=False)
    if len(content) > 2 * LONGEST_REQUEST:  # numbers such as 1e9, written out
        raise UnreadableError(413, f"expected JSON that has at most {2 * LONGEST_REQUEST} bytes when it is written out")
    pictures = [each for each in found if each.picture]
    bare = sum(len(each.text) for each in pictures)
    return Asked(
        model=model,
        prompt=PREAMBLE + most_tokens(text) - bare + len(pictures) * dialect.picture + dialect.preamble(kept),
        estimate=_estimate(text, len(found), sum(estimate_tokens(each.text) for each in found)),
        size=len(text) - bare,
        unbounded="" if len(pictures) == len(found) else "a file that is not a picture",
        reply=min(asked, default=None),
        ceilings=ceilings,
        thinking=thinking,
        quiet=not (isinstance(options, dict) and options.get("include_usage")),
        content=content,
    )


def count_tokens(body: bytes) -> int:
    """About how many tokens a request has. Raises UnreadableError: it is not a JSON object."""
    said = _object(body)
    files = [estimate_tokens(each.text) for each in attachments(said) if not each.elsewhere]
    return _estimate(json.dumps(said, ensure_ascii=False), len(files), sum(files))


def _estimate(text: str, files: int, in_files: int) -> int:
    return max(1, estimate_tokens(text) - in_files + PICTURE * files)


def read_whole(path: str, body: bytes) -> tuple[Told, bytes]:
    """What there is to know of a whole reply, and the reply as JSON in which every character is itself."""
    said = read_json(body)
    plain = json.dumps(said, ensure_ascii=False).encode(errors="replace") if isinstance(said, dict) else body
    return DIALECTS[path].told(said, whole=True), plain


def read_event(path: str, event: bytes) -> tuple[Told, bytes]:
    """The same of an event of a stream."""
    said = event_data(event)
    return DIALECTS[path].told(said, whole=False), respelt(event, said)


def _object(body: bytes) -> dict[str, Any]:
    said = read_json(body)
    if not isinstance(said, dict):
        raise UnreadableError(400, "expected a JSON object")
    return said
