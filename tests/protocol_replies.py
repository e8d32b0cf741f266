"""Replies of tests/openai_server.py in the three protocols that the gateway passes on, whole and as streams."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tests.openai_server import Behaviour, Request, reply

WORDS = ("Fine, ", "thank ", "you.")


def event(said: Any, name: str = "") -> str:
    return (f"event: {name}\n" if name else "") + f"data: {json.dumps(said)}\n\n"


def chat(**counted: int) -> Behaviour:
    return reply("".join(WORDS), **counted)


def chat_stream(
    words: Sequence[str] = WORDS,
    *,
    usage: bool = True,
    prompt: int = 100,
    cached: int = 0,
    completion: int = 20,
    **more: Any,
) -> Behaviour:
    def chunk(delta: Mapping[str, Any] | None, finish: str | None = None, **rest: Any) -> str:
        choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
        return event(
            {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": choices} | rest
        )

    counted = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
    said = [
        chunk({"role": "assistant", "content": ""}),
        *(chunk({"content": word}) for word in words),
        chunk({}, "stop"),
    ]
    last = [chunk(None, usage=counted)] if usage else []
    return Behaviour(pieces=[*said, *last, "data: [DONE]\n\n"], **more)


def _response(prompt: int, cached: int, completion: int) -> dict[str, Any]:
    text = {"type": "output_text", "text": "".join(WORDS), "annotations": []}
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 0,
        "status": "completed",
        "model": "m",
        "output": [{"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": [text]}],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": prompt,
            "input_tokens_details": {"cached_tokens": cached},
            "output_tokens": completion,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": prompt + completion,
        },
    }


def response(prompt: int = 100, cached: int = 0, completion: int = 20) -> Behaviour:
    return Behaviour(body=json.dumps(_response(prompt, cached, completion)))


def response_stream(
    words: Sequence[str] = WORDS,
    *,
    usage: bool = True,
    prompt: int = 100,
    cached: int = 0,
    completion: int = 20,
    **more: Any,
) -> Behaviour:
    whole = _response(prompt, cached, completion)
    said = [("response.created", {"response": {**whole, "status": "in_progress", "output": [], "usage": None}})]
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0, "logprobs": []}
    said += [("response.output_text.delta", {**place, "delta": word}) for word in words]
    said += [("response.completed", {"response": whole})] if usage else []
    return Behaviour(
        pieces=[event({"type": name, "sequence_number": n, **rest}, name) for n, (name, rest) in enumerate(said)],
        **more,
    )


def _message(completion: int, counted: Mapping[str, int]) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": "".join(WORDS)}],
        "stop_reason": "end_turn",
        "usage": {**counted, "output_tokens": completion},
    }


def message(prompt: int = 100, cached: int = 0, written: int = 0, completion: int = 20) -> Behaviour:
    counted = {"input_tokens": prompt, "cache_read_input_tokens": cached, "cache_creation_input_tokens": written}
    return Behaviour(body=json.dumps(_message(completion, counted)))


def message_stream(
    words: Sequence[str] = WORDS,
    *,
    usage: bool = True,
    prompt: int = 100,
    cached: int = 0,
    written: int = 0,
    completion: int = 20,
    **more: Any,
) -> Behaviour:
    counted = {"input_tokens": prompt, "cache_read_input_tokens": cached, "cache_creation_input_tokens": written}
    said: list[tuple[str, dict[str, Any]]] = [
        ("message_start", {"message": {**_message(1, counted), "content": []}}),
        ("content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}}),
        ("ping", {}),
        *(("content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": word}}) for word in words),
        ("content_block_stop", {"index": 0}),
    ]
    if usage:
        said.append(("message_delta", {"delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": completion}}))
    said.append(("message_stop", {}))
    return Behaviour(pieces=[event({"type": name, **rest}, name) for name, rest in said], **more)


def obedient(request: Request) -> Behaviour:
    """As many words as the request allows, each a token, in the protocol and the way that it is made in."""
    fields = ("max_tokens", "max_completion_tokens", "max_output_tokens")
    [words] = [request.body[name] for name in fields if name in request.body]
    streams = {"completions": (chat, chat_stream), "responses": (response, response_stream)}
    whole, stream = streams.get(request.path.rpartition("/")[2], (message, message_stream))
    return stream(["word"] * words, completion=words) if request.body.get("stream") else whole(completion=words)
