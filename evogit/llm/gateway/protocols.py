"""The three protocols that coding programs speak to models: what of a request may pass, what a reply says it cost.

A protocol lets through the fields that it lists and no others: not those that cost more than prices say (tiers, caches
that are kept for long, predictions), that bring in what is not in the request (stored replies), that name other models
or ask for several replies at once, that go on when the connection ends, or that have the endpoint
itself search, fetch and run things, which would be a network for who has none. Sources of the formats: https://platform.openai.com/docs/api-reference
(chat, responses) and https://docs.claude.com/en/api/messages, as their own clients of 2026 read and write them.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from msgspec import Struct

from evogit.llm import TokenUsage
from evogit.llm.gateway.events import event_text
from evogit.llm.replies import count, read_usage

KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
}
"""Status -> what both makers call the kind of error; all others are an `api_error`."""

OUT_OF_MONEY = "insufficient_quota"  # the code after which programs do not try again

_OWN_TOOL = re.compile(r"(bash|text_editor|memory|computer)_\d{8}")
"""Types of tools that Anthropic's endpoint describes to the model and the program carries out."""

_ELSEWHERE = ("image_url", "file_url", "video_url", "audio_url")
_CONTENT = ("messages", "input", "system", "instructions")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


class Told(Struct, frozen=True, kw_only=True):
    """The facts of a reply, or of an event of it, that the engine needs."""

    usage: TokenUsage | None = None  # what it says it cost, if it does
    last: bool = False  # whether that is the usage of all of the reply
    size: int = 0  # bytes of text that it adds
    extra: bool = False  # whether it comes only because we asked for the usage
    readable: bool = False  # whether it is a JSON object


class Dialect(ABC):
    """One protocol."""

    path: ClassVar[str]  # below the address of the endpoint, which ends in "/v1"
    fields: ClassVar[frozenset[str]]  # of a request
    limits: ClassVar[tuple[str, ...]]  # fields that limit the tokens of a reply, the one to add first
    thinking: ClassVar[tuple[str, ...]] = ()  # fields that may say how many of these tokens are for thinking
    # the types of those tools which the program itself carries out
    tools: ClassVar[tuple[str, ...]] = ("function", "custom")
    picture: ClassVar[int] = 50_000  # tokens of a picture at most; those of OpenAI's smallest models count most
    caches: ClassVar[bool] = False  # whether a prompt may have to be paid as written to a cache
    replied: ClassVar[str]  # the field of a whole reply that holds what the model wrote

    def refusal(self, body: Mapping[str, Any]) -> str:
        """Why a request is not passed on at all, as it would be another one without what is not allowed."""
        return ""

    def preamble(self, body: Mapping[str, Any]) -> int:
        """Tokens that the endpoint adds for the tools of a request at most."""
        return 1000 if "tools" in body or "functions" in body else 0

    def restrict(self, body: Mapping[str, Any], model: str) -> dict[str, Any]:
        """What is sent on, with the endpoint's name of the model."""
        kept = {name: value for name, value in body.items() if name in self.fields} | {"model": model}
        for part in _objects(kept):  # caches of five minutes, as `written` of a price; none where writing is not told
            if "cache_control" in part:
                part.pop("cache_control")
                part |= {"cache_control": {"type": "ephemeral"}} if self.caches else {}
        if "tools" in kept:
            offered = kept["tools"] if isinstance(kept["tools"], list) else []
            kept["tools"] = [tool for tool in offered if isinstance(tool, dict) and self._is_local(tool)]
            if not kept["tools"]:
                for name in ("tools", "tool_choice", "parallel_tool_calls"):
                    kept.pop(name, None)
        return kept

    def _is_local(self, tool: Mapping[str, Any]) -> bool:
        return tool.get("type") in self.tools

    def told(self, said: Any, *, whole: bool) -> Told:
        """What there is to know of a whole reply, or of an event of a stream."""
        if not isinstance(said, dict):
            return Told()
        found, texts = self.usage(said), _texts(said.get(self.replied)) if whole else self.text(said)
        return Told(
            usage=found[0] if found else None,
            last=bool(found and (whole or found[1])),
            size=sum(len(text.encode(errors="replace")) for text in texts),
            extra=self.is_extra(said),
            readable=True,
        )

    @abstractmethod
    def usage(self, said: Mapping[str, Any]) -> tuple[TokenUsage, bool] | None:
        """Return the usage so far that a reply or an event of it tells, and whether it is that of all of it."""

    @abstractmethod
    def text(self, event: Mapping[str, Any]) -> Iterator[str]:
        """What an event adds to the reply, reasoning and calls of tools included."""

    def is_extra(self, event: Mapping[str, Any]) -> bool:
        """Whether an event comes only because we asked for the usage."""
        return False

    def error(self, status: int, code: str | None, message: str) -> dict[str, Any]:
        """The body of an error."""
        kind = KINDS.get(status, "api_error")
        return {"error": {"message": message, "type": code or kind, "param": None, "code": code}}

    def parting(self, status: int, code: str | None, message: str) -> bytes:
        """The last event of a stream that is broken off."""
        return event_text("", self.error(status, code, message))


class Chat(Dialect):
    """OpenAI Chat Completions."""

    path = "chat/completions"
    fields = _words(
        "messages model stream stream_options tools tool_choice functions function_call parallel_tool_calls "
        "temperature top_p top_k min_p stop seed max_tokens max_completion_tokens presence_penalty "
        "frequency_penalty repetition_penalty logit_bias logprobs top_logprobs response_format reasoning_effort "
        "reasoning verbosity thinking enable_thinking include_reasoning chat_template_kwargs user "
        "safety_identifier prompt_cache_key metadata"
    )
    limits = ("max_tokens", "max_completion_tokens")
    thinking = ("reasoning", "thinking")
    replied = "choices"

    def restrict(self, body: Mapping[str, Any], model: str) -> dict[str, Any]:
        """Has the endpoint tell the usage of streams, too."""
        kept = super().restrict(body, model)
        if kept.get("stream"):
            options = _dict(kept.get("stream_options"))
            plain = {name: options[name] for name in ("include_obfuscation",) if name in options}
            kept["stream_options"] = {**plain, "include_usage": True}
        else:
            kept.pop("stream_options", None)
        return kept

    def usage(self, said: Mapping[str, Any]) -> tuple[TokenUsage, bool] | None:
        """Of a reply or of an event; some endpoints tell it with each, so far, and with the last one for all."""
        usage, choices = read_usage(said.get("usage")), _list(said.get("choices"))
        last = not choices or any(_dict(choice).get("finish_reason") for choice in choices)
        return (usage, last) if usage else None

    def text(self, event: Mapping[str, Any]) -> Iterator[str]:
        """Content, reasoning and the arguments of calls, of all choices."""
        for choice in _list(event.get("choices")):
            delta = _dict(_dict(choice).get("delta"))
            yield from (delta[name] for name in ("content", "reasoning_content", "reasoning") if _is_text(delta, name))
            calls = [_dict(_dict(call).get("function")) for call in _list(delta.get("tool_calls"))]
            for call in [*calls, _dict(delta.get("function_call"))]:
                yield from (call[name] for name in ("name", "arguments") if _is_text(call, name))

    def is_extra(self, event: Mapping[str, Any]) -> bool:
        """No choices but the usage: programs that did not ask for it take the first choice of every event."""
        return event.get("choices") == [] and bool(event.get("usage"))


class Responses(Dialect):
    """OpenAI Responses."""

    path = "responses"
    fields = _words(
        "input model instructions stream stream_options tools tool_choice parallel_tool_calls temperature top_p "
        "max_output_tokens reasoning text include truncation user safety_identifier "
        "prompt_cache_key metadata top_logprobs"
    )
    limits = ("max_output_tokens",)
    tools = ("function", "custom", "local_shell", "apply_patch")
    replied = "output"

    def refusal(self, body: Mapping[str, Any]) -> str:
        """What the endpoint has stored would be billed, and is not in the request."""
        if body.get("previous_response_id") is not None:
            return "expected all of a conversation in the request, got previous_response_id"
        items = [_dict(item) for item in _list(body.get("input"))]
        if any(item.get("type") == "item_reference" or not (item.keys() & {"type", "role"}) for item in items):
            return "expected all of a conversation in the request, got a reference to an item"
        return ""

    def restrict(self, body: Mapping[str, Any], model: str) -> dict[str, Any]:
        """Nothing is to be stored; that nothing is may be said."""
        return super().restrict(body, model) | ({"store": False} if body.get("store") is False else {})

    def usage(self, said: Mapping[str, Any]) -> tuple[TokenUsage, bool] | None:
        """Of a response, or of an event that has one, the last of which says how it ended."""
        usage = _dict(_dict(said.get("response", said)).get("usage"))
        prompt, completion = count(usage.get("input_tokens")), count(usage.get("output_tokens"))
        if not prompt or completion is None:
            return None
        completion = max(completion, (count(usage.get("total_tokens")) or 0) - prompt)
        cached = count(_dict(usage.get("input_tokens_details")).get("cached_tokens")) or 0
        last = said.get("type") in ("response.completed", "response.incomplete", "response.failed")
        return TokenUsage(prompt=prompt, cached=min(cached, prompt), completion=completion), last

    def text(self, event: Mapping[str, Any]) -> Iterator[str]:
        """What the deltas of all kinds add."""
        if str(event.get("type", "")).endswith(".delta") and _is_text(event, "delta"):
            yield event["delta"]

    def parting(self, status: int, code: str | None, message: str) -> bytes:
        """A response that failed: Codex reads its code; `error` at the top is what OpenAI's clients raise."""
        error = {"code": code or "server_error", "message": message}
        response = {"id": "resp_0", "object": "response", "created_at": 0, "output": []}
        said = {
            "type": "response.failed",
            "sequence_number": 0,
            "response": {**response, "status": "failed", "error": error},
        }
        return event_text("response.failed", {**said, "error": error})


class Messages(Dialect):
    """Anthropic Messages."""

    path = "messages"
    fields = _words(
        "messages model system max_tokens stream tools tool_choice temperature top_p top_k stop_sequences thinking "
        "output_config output_format metadata cache_control"
    )
    limits = ("max_tokens",)
    thinking = ("thinking",)
    picture = 5000
    caches = True
    replied = "content"

    def preamble(self, body: Mapping[str, Any]) -> int:
        """Tools of its own kinds are a few words in a request, and some hundred tokens in the prompt."""
        known = [tool for tool in _list(body.get("tools")) if _OWN_TOOL.fullmatch(str(tool.get("type")))]
        return super().preamble(body) + 2000 * len(known)

    def _is_local(self, tool: Mapping[str, Any]) -> bool:
        """A tool without a type is the program's own in this protocol alone, if it says what it takes."""
        kind = tool.get("type")
        return kind in self.tools or bool(_OWN_TOOL.fullmatch(str(kind))) or (kind is None and "input_schema" in tool)

    def usage(self, said: Mapping[str, Any]) -> tuple[TokenUsage, bool] | None:
        """Of a message, of its start (the prompt alone), or of its end; what goes into the cache comes on top."""
        usage = _dict(_dict(said.get("message", said)).get("usage"))
        read, written = (count(usage.get(f"cache_{name}_input_tokens")) or 0 for name in ("read", "creation"))
        prompt = (count(usage.get("input_tokens")) or 0) + read + written
        completion = count(usage.get("output_tokens"))
        if completion is None or not (prompt or said.get("type") == "message_delta"):
            return None
        last = said.get("type") == "message_delta" and bool(_dict(said.get("delta")).get("stop_reason"))
        return TokenUsage(prompt=prompt, cached=read, written=written, completion=completion), last

    def text(self, event: Mapping[str, Any]) -> Iterator[str]:
        """What the deltas add: text, thinking, and the input of tools."""
        if event.get("type") == "content_block_delta":
            delta = _dict(event.get("delta"))
            yield from (delta[name] for name in ("text", "thinking", "partial_json") if _is_text(delta, name))

    def error(self, status: int, code: str | None, message: str) -> dict[str, Any]:
        """As Anthropic words it."""
        return {"type": "error", "error": {"type": KINDS.get(status, "api_error"), "message": message}}

    def parting(self, status: int, code: str | None, message: str) -> bytes:
        """An event of its own kind."""
        return event_text("error", self.error(status, code, message))


DIALECTS: Mapping[str, Dialect] = {f"/v1/{each.path}": each for each in (Chat(), Responses(), Messages())}
"""Path -> protocol."""


# --- what is attached -------------------------------------------------------------------------------------------


class Attachment(Struct, frozen=True):
    """A file or picture in a request: its base64, or where the endpoint would have to get it from."""

    text: str
    elsewhere: bool = False
    picture: bool = False


def attachments(body: Mapping[str, Any]) -> Iterator[Attachment]:
    """All of a request; what a tool was called with is no content, whatever its fields are called."""
    for part in _objects([body.get(name) for name in _CONTENT]):
        yield from _attached(part)


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """Every object in a request, outer ones first, but none of what a tool was called with."""
    rest = [value]
    while rest:
        match rest.pop():
            case list() as several:
                rest += several
            case dict() as part:
                yield part
                called = str(part.get("type", "")).endswith("tool_use")
                rest += [value for name, value in part.items() if not (called and name == "input")]
            case _:
                pass


def _attached(part: Mapping[str, Any]) -> Iterator[Attachment]:
    source = _dict(part.get("source"))
    places = [part.get(name) for name in _ELSEWHERE]
    for place in [_dict(place).get("url", place) for place in places]:
        if isinstance(place, str):
            yield Attachment(place, elsewhere=not place.startswith("data:"), picture=place.startswith("data:image/"))
    if source.get("type") in ("url", "file"):
        yield Attachment(str(source.get("url") or source.get("file_id")), elsewhere=True)
    if _is_text(part, "file_id"):
        yield Attachment(part["file_id"], elsewhere=True)
    if part.get("type") not in ("text", "redacted_thinking"):
        picture = part.get("type") == "base64" and str(part.get("media_type")).startswith("image/")
        named = [name for name in ("data", "file_data") if _is_text(part, name)]
        yield from (Attachment(part[name], picture=picture and name == "data") for name in named)


_NO_TEXT = frozenset({"logprobs", "encrypted_content", "signature"})
"""Fields of a reply that are no text of the model's, and may be many times as long."""


def _texts(value: Any) -> Iterator[str]:
    """All texts of a part of a reply."""
    rest: list[Any] = [value]
    while rest:
        match rest.pop():
            case str() as text:
                yield text
            case list() as several:
                rest += several
            case dict() as part:
                rest += [each for name, each in part.items() if name not in _NO_TEXT]
            case _:
                pass


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _is_text(mapping: Mapping[str, Any], name: str) -> bool:
    return isinstance(mapping.get(name), str)
