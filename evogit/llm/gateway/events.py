"""Server-sent events, which all protocols stream in: cut out of bytes whole, read, and shown without secrets."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterable
from typing import Any

LONGEST_EVENT = 8_000_000
"""Bytes of one event; the last one of a response repeats all of it."""

_BLANK_LINE = re.compile(rb"\r?\n\r?\n|\r\r")


class EndlessEventError(Exception):
    """An event has more than LONGEST_EVENT bytes."""


async def whole_events(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Each event with the blank line after it, and what is left at the end.

    Raises:
        EndlessEventError: one is too long.
    """
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


def redacted_event(event: bytes, said: Any, secrets: Iterable[str]) -> bytes:
    """An event without secrets, in whatever way JSON spells them."""
    text = event.decode(errors="replace")
    plain = json.dumps(said, ensure_ascii=False) if said is not None and "\\" in text else text
    if not any(secret in plain or secret in text for secret in secrets):
        return event
    if said is not None:
        others = [line for line in text.splitlines() if line and not line.startswith("data:")]
        text = "\n".join([*others, f"data: {json.dumps(said, ensure_ascii=False)}", "", ""])
    return redacted(text, secrets).encode(errors="replace")


def redacted(text: str, secrets: Iterable[str]) -> str:
    """A text without secrets."""
    for secret in secrets:
        text = text.replace(secret, "[redacted]")
    return text
