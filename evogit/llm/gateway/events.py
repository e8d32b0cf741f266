"""Server-sent events, which all protocols stream in: cut out of bytes whole, read, and shown without secrets."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterable
from typing import Any

LONGEST_EVENT = 4_000_000  # bytes of one event; the last one of a response repeats all of it
_BLANK_LINE = re.compile(rb"\r?\n\r?\n|\r\r")


class EndlessEventError(Exception):
    """An event has more than LONGEST_EVENT bytes."""


async def whole_events(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield each event with its blank line, and the rest. Raises EndlessEventError: one is too long."""
    buffer = bytearray()
    async for part in parts:
        searched = max(0, len(buffer) - 3)
        buffer += part
        while found := _BLANK_LINE.search(buffer, searched):
            yield bytes(buffer[: found.end()])
            del buffer[: found.end()]
            searched = 0
        if len(buffer) > LONGEST_EVENT:
            raise EndlessEventError
    if buffer:
        yield bytes(buffer)


def event_data(event: bytes) -> Any:
    """What an event says in JSON, None where it says nothing or something else."""
    lines = re.findall(rb"^data:(.*)$", event.replace(b"\r", b"\n"), re.MULTILINE)
    return read_json(b"\n".join(lines)) if lines else None


def read_json(text: bytes | str) -> Any:
    """What a text says in JSON, None where it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def event_text(name: str, said: Any) -> bytes:
    """An event of ours; `name` may be empty."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(said)}\n\n".encode()


def respelt(event: bytes, said: Any) -> bytes:
    """An event in which every character of what it says is itself, as JSON could spell a secret in other ways."""
    if said is None or b"\\" not in event:
        return event
    others = [line for line in event.decode(errors="replace").splitlines() if line and not line.startswith("data:")]
    text = "\n".join([*others, f"data: {json.dumps(said, ensure_ascii=False)}", "", ""])
    return text.encode(errors="replace")


def redacted_event(event: bytes, plain: bytes, secrets: Iterable[str]) -> bytes:
    """An event without secrets; `plain` is the same `respelt`."""
    hidden = [secret.encode() for secret in secrets]
    if not any(secret in each for secret in hidden for each in (event, plain)):
        return event
    for secret in hidden:
        plain = plain.replace(secret, b"[redacted]")
    return plain


def redacted(text: str, secrets: Iterable[str]) -> str:
    """A text without secrets."""
    for secret in secrets:
        text = text.replace(secret, "[redacted]")
    return text
