"""What an endpoint sent, read with suspicion: a reply, or why it is none."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal

from msgspec import Struct

from evogit.llm import ModelError, TokenUsage, estimate_tokens
from evogit.llm.bounds import is_plausible
from evogit.llm.gateway.events import event_data

LONGEST_BODY = 1_000_000  # bytes of a body that are read at most
LONGEST_STREAM = 64_000_000  # the same of a reply that is streamed; an event takes some hundred for a word
MOST_LINES = 20_000  # lines of a reply's text, each of which is looked at
LONGEST_ERROR = 20_000  # the same for an answer that is an error

MAY_BE_BILLED = frozenset({408, 499, 502, 504, *range(520, 528), 598, 599})
"""Statuses by which a proxy says that it waited no longer, while the endpoint behind it may have gone on."""

LONGEST_WAIT = 300.0  # seconds that an endpoint's `Retry-After` is honoured at most

Fault = Literal["reply", "question", "endpoint", "unknown"]
"""`reply`: it came and is of no use; `question`: the endpoint refuses it; `endpoint`: it cannot be asked now;
`unknown`: it is down, or what it was asked brings it down."""

UNAVAILABLE = frozenset({408, 409, 429, 502, 503, 504, *range(520, 530), 598, 599})
"""Statuses by which an endpoint, or a proxy before it, says that it has no time for anybody now."""

CUT = "the reply was cut at the limit on its tokens"  # why a reply that ends at its ceiling is none
LONGEST_QUOTE = 200  # characters of an endpoint's own words that go into a message


class LostAttemptError(ModelError):
    """An attempt without a usable reply at the cost of `usage`; `again` if another may help, after `wait` seconds."""

    def __init__(
        self, reason: str, usage: TokenUsage, *, again: bool, wait: float | None = None, fault: Fault = "reply"
    ) -> None:
        super().__init__(reason)
        self.usage = usage
        self.again = again
        self.wait = wait
        self.fault = fault


def read_reply(body: str, prompt: int) -> tuple[str, TokenUsage]:
    """Return text and usage, `prompt` tokens where it says too few. Raises LostAttemptError: it is no completion."""
    unknown = TokenUsage(prompt=prompt, completion=estimate_tokens(body), estimated=True)
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        raise LostAttemptError(f"the reply is not JSON: {quote(body)}", unknown, again=True, fault="unknown") from None
    if not isinstance(answer, dict):
        raise LostAttemptError(
            f"the reply is not a chat completion: {quote(body)}", unknown, again=True, fault="unknown"
        )
    told = read_usage(answer.get("usage"))
    usage = told if told and is_plausible(told, 4 * (prompt - 1), 0) else unknown
    choices = answer.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise LostAttemptError(f"the reply has no choices: {quote(body)}", usage, again=True, fault="unknown")
    text = _text_of(choice, message, usage)
    counted = usage.completion and is_plausible(usage, 0, len(text.encode()))
    return text, usage if counted else unknown


def _text_of(choice: dict[str, Any], message: dict[str, Any], usage: TokenUsage) -> str:
    text, finish = message.get("content"), choice.get("finish_reason")
    if finish == "length":
        raise LostAttemptError(f"{CUT}; raise max_tokens", usage, again=False)
    if refused := message.get("refusal"):
        raise LostAttemptError(f"the model refused: {quote(str(refused))}", usage, again=False)
    if finish == "content_filter":
        raise LostAttemptError("the endpoint's content filter stopped the reply", usage, again=False)
    if finish == "error":
        raise LostAttemptError("the endpoint failed in the middle of the reply", usage, again=True, fault="unknown")
    if not isinstance(text, str) or not text.strip():
        raise LostAttemptError("the reply has no text", usage, again=True)
    if text.count("\n") > MOST_LINES:
        raise LostAttemptError(f"the reply has more than {MOST_LINES:,} lines", usage, again=False)
    return text.encode(errors="replace").decode()  # JSON can spell halves of characters, which no file can hold


def plain_json(text: str) -> str:
    """JSON with every character as itself, so that a secret in it can be found; what is none as it is."""
    try:
        return json.dumps(json.loads(text), ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def read_usage(said: Any) -> TokenUsage | None:
    """Return what was counted, None unless it makes sense; xAI and Google tell reasoning in the total alone."""
    if not isinstance(said, dict):
        return None
    prompt, completion = count(said.get("prompt_tokens")), count(said.get("completion_tokens"))
    if not prompt or completion is None:
        return None
    details = said.get("prompt_tokens_details")
    known = details if isinstance(details, dict) else {}
    cached = min(count(known.get("cached_tokens")) or 0, prompt)
    return TokenUsage(
        prompt=prompt,
        cached=cached,
        written=min(count(known.get("cache_write_tokens")) or 0, prompt - cached),
        completion=max(completion, (count(said.get("total_tokens")) or 0) - prompt),
    )


def count(value: Any) -> int | None:
    """A number of tokens, None for what cannot be one."""
    return value if type(value) is int and 0 <= value < 10**9 else None


def quote(text: str) -> str:
    """The beginning of an endpoint's own words, on one line and without what could command a terminal."""
    line = " ".join(text[: 4 * LONGEST_QUOTE].split())
    line = "".join(character if character.isprintable() else "?" for character in line)
    return line if len(line) <= LONGEST_QUOTE else line[:LONGEST_QUOTE] + "…"


def read_error(text: str) -> tuple[str, str]:
    """The code and the message for people in the body of an error; the code is empty where there is none."""
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return "", quote(text)
    error = said.get("error", said) if isinstance(said, dict) else said
    if not isinstance(error, dict):
        return "", quote(str(error))
    return str(error.get("code") or ""), quote(str(error.get("message") or text))


def retry_after(header: str | None, now: datetime | None = None) -> float | None:
    """Seconds to wait, from a number or an HTTP date, capped at LONGEST_WAIT; None where there is neither."""
    if header is None:
        return None
    if re.fullmatch(r"\d+(\.\d+)?", header.strip()):
        return min(float(header), LONGEST_WAIT)
    try:
        then = parsedate_to_datetime(header)
    except (ValueError, OverflowError):
        return None
    then = then if then.tzinfo else then.replace(tzinfo=UTC)
    return min(max((then - (now or datetime.now(UTC))).total_seconds(), 0.0), LONGEST_WAIT)


REFUSALS = frozenset({400, 404, 405, 415, 422, 501})
"""Statuses by which an endpoint says that it does not know `stream`, if it names it."""

NAMES_STREAM = re.compile(r"\bstream", re.IGNORECASE)  # proxies speak of what is upstream, and mean something else


class StreamPiece(Struct, frozen=True, kw_only=True):
    """An event of a stream; `usage` of all, `error` as JSON, `beside` characters that are no text of the reply."""

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
    value = said.get("choices")
    choices = value if isinstance(value, list) else []
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
"""An error for an essential part of a reply that is missing or wrong."""

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
        usages = filter(None, [self.usage, piece.usage])
        self.usage = max(usages, key=lambda usage: usage.prompt + usage.completion, default=None)
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
        answer: dict[str, Any] = {"choices": [choice]}
        if usage := self.usage:
            details = {"cached_tokens": usage.cached, "cache_write_tokens": usage.written}
            counts = {"prompt_tokens": usage.prompt, "completion_tokens": usage.completion}
            answer["usage"] = {**counts, "prompt_tokens_details": details}
        return json.dumps(answer, ensure_ascii=False)


def _text(delta: Any, name: str) -> str:
    said = delta.get(name) if isinstance(delta, dict) else None
    return said if isinstance(said, str) else ""
