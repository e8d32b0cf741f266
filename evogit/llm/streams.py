"""A reply that comes in pieces, put together to what the endpoint would have answered as a whole."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

from evogit.llm import TokenUsage
from evogit.llm.gateway.events import event_data
from evogit.llm.replies import LONGEST_ERROR, read_usage

REFUSALS = frozenset({400, 404, 405, 415, 422, 501})
"""Statuses by which an endpoint says that it does not know `stream`, if it names it."""

NAMES_STREAM = re.compile(r"\bstream", re.IGNORECASE)  # proxies speak of what is upstream, and mean something else


class StreamPiece(Struct, frozen=True, kw_only=True):
    """What one event of a stream says; `usage` is that of the whole reply, `error` JSON of what went wrong.

    `beside`: characters that the model wrote and that are no part of its text, such as its reasoning.
    """

    text: str = ""
    refusal: str = ""
    beside: int = 0
    finish: str = ""
    usage: TokenUsage | None = None
    error: str = ""
    last: bool = False


def piece_of(event: bytes) -> StreamPiece:
    """Read one event of Chat Completions; what is none says nothing, unless a part of the reply is lost with it."""
    said = event_data(event)
    if not isinstance(said, dict):
        return UNREADABLE if _LOST.search(event) else StreamPiece(last=b"[DONE]" in event)
    if said.get("error"):
        return StreamPiece(error=json.dumps(said["error"])[:LONGEST_ERROR])
    choices = _list(said.get("choices"))
    first = next((each for each in choices if isinstance(each, dict) and not each.get("index")), {})
    finish, delta = first.get("finish_reason"), first.get("delta")
    return StreamPiece(
        text=_text(delta, "content"),
        refusal=_text(delta, "refusal"),
        beside=sum(len(_text(delta, name)) for name in ("reasoning_content", "reasoning")),
        finish=finish if isinstance(finish, str) else "",
        usage=read_usage(said.get("usage")) if finish or not choices else None,  # before it is that of what came so far
    )


UNREADABLE = StreamPiece(error=json.dumps("an event cannot be read"))
"""What came instead of a part of the reply, without which the rest is of no use."""

_LOST = re.compile(rb"^data: *\{", re.MULTILINE)


@dataclass(slots=True)
class StreamedReply:
    """A stream as far as it came."""

    texts: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    finish: str = ""
    usage: TokenUsage | None = None
    complete: bool = False
    size: int = 0  # characters of its text
    beside: int = 0  # characters of its reasoning, which is not kept

    def take(self, piece: StreamPiece) -> None:
        """Add one event; of two usages the larger one counts."""
        if piece.text:
            self.texts.append(piece.text)
        if piece.refusal:
            self.refusals.append(piece.refusal)
        self.finish = piece.finish or self.finish
        self.usage = max(filter(None, [self.usage, piece.usage]), key=_tokens, default=None)
        self.complete |= bool(piece.last or piece.finish)
        self.size += len(piece.text) + len(piece.refusal)
        self.beside += piece.beside

    @property
    def tokens(self) -> int:
        """About how many tokens came."""
        return (self.size + self.beside) // 4

    @property
    def whole(self) -> str:
        """JSON of the same reply in one piece."""
        message = {"content": "".join(self.texts), "refusal": "".join(self.refusals)}
        choice = {"message": message, "finish_reason": self.finish or "stop"}
        usage = {} if self.usage is None else {"usage": _told(self.usage)}
        return json.dumps({"choices": [choice], **usage}, ensure_ascii=False)


def _tokens(usage: TokenUsage) -> int:
    return usage.prompt + usage.completion


def _told(usage: TokenUsage) -> Mapping[str, Any]:
    details = {"cached_tokens": usage.cached, "cache_write_tokens": usage.written}
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "prompt_tokens_details": details,
    }


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(delta: Any, name: str) -> str:
    said = delta.get(name) if isinstance(delta, dict) else None
    return said if isinstance(said, str) else ""
