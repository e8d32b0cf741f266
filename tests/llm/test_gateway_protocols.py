"""What passes in each of the three protocols, and what it is charged."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx2
import openai
import pytest

from evogit.llm import Price, TokenUsage
from tests.openai_server import Behaviour, reply, serve
from tests.protocol_replies import (
    WORDS,
    chat,
    chat_stream,
    message,
    message_stream,
    obedient,
    response,
    response_stream,
)

from .conftest import ASKED, DUMMY, KEY, Ledger
from .test_gateway import PRICE

Start = Callable[..., Any]
pytestmark = pytest.mark.slow

STREAMS: dict[str, Callable[..., Behaviour]] = {
    "chat/completions": chat_stream,
    "responses": response_stream,
    "messages": message_stream,
}
WHOLE: dict[str, Callable[..., Behaviour]] = {"chat/completions": chat, "responses": response, "messages": message}
PATHS = pytest.mark.parametrize("path", STREAMS)


@PATHS
async def test_each_protocol_is_counted(program: Start, ledger: Ledger, path: str) -> None:
    counted = {"prompt": 1000, "cached": 200, "completion": 50}
    with serve([WHOLE[path](**counted), STREAMS[path](**counted)]) as server:
        async with program(server.url, PRICE) as cli:
            whole = await cli.ask(path)
            text = await cli.stream(path)
    assert "".join(WORDS) in whole.text
    assert [word for word in WORDS if word not in text] == []
    prompt = 1200 if path == "messages" else 1000  # Anthropic counts what it had cached on top
    assert ledger.charges == [(TokenUsage(prompt=prompt, cached=200, completion=50), "")] * 2
    assert {request.path for request in server.requests} == {f"/v1/{path}"}


async def test_a_stream_comes_as_it_was_but_for_what_only_we_asked_for(program: Start) -> None:
    streams = [STREAMS[path]() for path in STREAMS]
    with serve([*streams, chat_stream()]) as server:
        async with program(server.url) as cli:
            texts = [await cli.stream(path) for path in STREAMS]
            told = await cli.stream(stream_options={"include_usage": True, "include_obfuscation": False})
    chat = [piece for piece in streams[0].pieces if '"choices": []' not in piece]
    assert texts == ["".join(chat), "".join(streams[1].pieces), "".join(streams[2].pieces)]
    assert told == "".join(streams[0].pieces)
    assert server.requests[0].body["stream_options"] == {"include_usage": True}
    assert server.requests[3].body["stream_options"] == {"include_usage": True, "include_obfuscation": False}
    assert "stream_options" not in server.requests[1].body


@PATHS
async def test_events_pass_at_once(program: Start, path: str) -> None:
    with serve([STREAMS[path](fault="stalled")]) as server:
        async with (
            program(server.url) as cli,
            cli.http.stream("POST", f"/v1/{path}", json=ASKED[path] | {"stream": True}) as answer,
        ):
            assert answer.headers["content-type"] == "text/event-stream"
            async for line in answer.aiter_lines():
                if "you." in line:
                    break


@PATHS
async def test_what_is_not_told_is_estimated(program: Start, ledger: Ledger, path: str) -> None:
    words = ["x" * 40] * 10
    cases = [
        (STREAMS[path](words, usage=False), ""),
        (STREAMS[path](words, usage=False, fault="cut"), "the connection broke: peer closed connection"),
        (STREAMS[path](words, completion=0), ""),
    ]
    with serve([behaviour for behaviour, _ in cases]) as server:
        async with program(server.url) as cli:
            for number, (_, failure) in enumerate(cases, 1):
                text = await cli.stream(path)
                assert text.count("x" * 40) == 10
                assert ("error" in text.splitlines()[-2]) == bool(failure)
                assert len(ledger.charges) == number
                usage, said = ledger.charges[-1]
                assert said.startswith(failure)
                assert bool(said) == bool(failure)
                assert (usage.completion, usage.estimated) == (100, True)
                assert usage.prompt == 100 or 10 <= usage.prompt <= 40


async def test_an_endpoint_that_counts_nothing_is_not_believed(program: Start, ledger: Ledger) -> None:
    nothing = Behaviour(body=json.dumps({"choices": [{"message": {"content": "x" * 400}}]}))
    with serve([nothing, reply("x" * 400, prompt=0, completion=0)]) as server:
        async with program(server.url) as cli:
            assert [(await cli.ask()).status_code for _ in range(2)] == [200, 200]
    assert [usage.estimated for usage, _ in ledger.charges] == [True, True]
    assert all(usage.prompt > 10 and usage.completion >= 100 for usage, _ in ledger.charges)


@PATHS
async def test_each_protocol_is_bounded_and_refused_in_its_own_words(program: Start, path: str) -> None:
    ledger, more = Ledger(limit=0.02), {"max_tokens": 10**6} if path == "messages" else {}
    with serve([obedient]) as server:
        async with program(server.url, PRICE, account=ledger) as cli:
            assert "word" in await cli.stream(path, **more)
            again = await cli.ask(path, **more)
    assert (again.status_code, len(server.requests)) == (402, 1)
    if path == "messages":
        assert (again.json()["type"], again.json()["error"]["type"]) == ("error", "billing_error")
    else:
        assert again.json()["error"]["code"] == "insufficient_quota"
    assert 0.018 <= ledger.dollars <= 0.02


@PATHS
async def test_an_endpoint_that_does_not_heed_its_ceiling_is_cut_in_each_protocol(program: Start, path: str) -> None:
    ledger = Ledger(limit=0.02)
    with serve([STREAMS[path](["word" * 20] * 2000)]) as server:
        async with program(server.url, PRICE, account=ledger) as cli:
            lines = (await cli.stream(path, **({"max_tokens": 1000} if path == "messages" else {}))).splitlines()
    said = json.loads(lines[-2].removeprefix("data: "))
    assert "does not heed the ceiling" in said["error"]["message"]
    if path == "messages":
        assert (lines[-3], said["type"], said["error"]["type"]) == ("event: error", "error", "api_error")
    if path == "responses":
        assert (said["type"], said["response"]["error"]["code"]) == ("response.failed", "server_error")
    [(usage, _)] = ledger.charges
    assert usage.estimated
    assert usage.completion > 1000


async def test_what_goes_into_anthropics_cache_costs_more(program: Start, ledger: Ledger) -> None:
    counted = {"prompt": 10, "cached": 200, "written": 1000, "completion": 50}
    with serve([message(**counted), message_stream(**counted)]) as server:
        async with program(server.url, PRICE) as cli:
            await cli.ask("messages")
            await cli.stream("messages")
    usage = TokenUsage(prompt=1210, cached=200, written=1000, completion=50)
    assert ledger.charges == [(usage, "")] * 2
    assert ledger.dollars == pytest.approx(2 * (10 * 1 + 200 * 0.5 + 1000 * 1.25 + 50 * 10) / 1e6)
    assert Price(prompt=1, cached=0.5, completion=10, written=2).of(usage) == pytest.approx(2610 / 1e6)


async def test_anthropics_headers_pass_and_its_key_goes_where_the_program_put_one(program: Start) -> None:
    with serve([message()]) as server:
        async with program(server.url) as cli:
            sent = {
                "anthropic-version": "2023-06-01",
                "anthropic-beta": "context-1m-2025-08-07, effort-2025-11-24,fast-mode-2026-02-01",
                "x-app": "cli",
            }
            await cli.http.post("/v1/messages?beta=true", json=ASKED["messages"], headers=sent)
            del cli.http.headers["x-api-key"]
            await cli.http.post("/v1/messages?evil=1", json=ASKED["messages"], headers={"anthropic-beta": b"\xe9"})
    first, second = server.requests
    assert first.path == "/v1/messages?beta=true"
    assert first.headers["x-api-key"] == KEY
    assert first.headers["anthropic-beta"] == "effort-2025-11-24"
    assert not {"authorization", "x-app"} & set(first.headers)
    assert second.path == "/v1/messages"
    assert second.headers["authorization"] == f"Bearer {KEY}"
    assert "anthropic-beta" not in second.headers
    assert "x-api-key" not in second.headers


@PATHS
async def test_the_endpoint_does_nothing_but_answer(program: Start, path: str) -> None:
    """No tool runs at the endpoint, as that would be a network; those of the program stay."""
    mine = [{"type": "function", "name": "edit", "function": {"name": "edit"}}, {"type": "custom", "name": "patch"}]
    theirs = [
        {"type": "web_search"},
        {"type": "web_search_20250305", "name": "web_search"},
        {"type": "code_interpreter", "container": {"type": "auto"}},
        {"type": "mcp", "server_url": "https://evil.example"},
        "nonsense",
    ]
    more = {"background": True, "mcp_servers": [{"url": "x"}], "plugins": [{"id": "web"}], "web_search_options": {}}
    with serve([WHOLE[path]()]) as server:
        async with program(server.url) as cli:
            await cli.ask(path, tools=[*theirs, *mine], **more)
            await cli.ask(path, tools=theirs, tool_choice="auto")
    assert server.requests[0].body == {**ASKED[path], "tools": mine}
    assert server.requests[1].body == ASKED[path]


async def test_a_persons_limit_on_tokens_holds(program: Start) -> None:
    with serve([chat()]) as server:
        async with program(server.url, "max_tokens = 99\n") as cli:
            await cli.ask(max_completion_tokens=1000)
            await cli.ask(max_completion_tokens=10)
            await cli.ask("responses")
            await cli.ask("messages", max_tokens=10**9)
    assert server.requests[0].body["max_completion_tokens"] == 99
    assert "max_tokens" not in server.requests[0].body
    assert server.requests[1].body["max_completion_tokens"] == 10
    assert server.requests[2].body["max_output_tokens"] == 99
    assert server.requests[3].body["max_tokens"] == 99


async def test_models_are_listed_and_prompts_counted_without_asking_anybody(program: Start, ledger: Ledger) -> None:
    with serve() as server:
        async with program(server.url, 'id = "org/real-name"') as cli:
            listed = (await cli.http.get("/v1/models?limit=1000")).json()
            one = await cli.http.get("/v1/models/org/real-name")
            none = await cli.http.get("/v1/models/other")
            counted = await cli.http.post("/v1/messages/count_tokens", json=ASKED["messages"])
    assert [model["id"] for model in listed["data"]] == ["m", "org/real-name"]
    assert (one.status_code, none.status_code) == (200, 403)
    assert 10 < counted.json()["input_tokens"] < 50
    assert server.requests == []
    assert ledger.charges == []


async def test_a_picture_is_not_counted_by_its_bytes(program: Start, ledger: Ledger) -> None:
    picture = "A" * 400_000
    parts = {
        "chat/completions": {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{picture}"}},
        "responses": {"type": "input_image", "image_url": f"data:image/png;base64,{picture}"},
        "messages": {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": picture}},
    }
    with serve([STREAMS[path](usage=False, prompt=0) for path in parts]) as server:
        async with program(server.url) as cli:
            for path, part in parts.items():
                name = "input" if path == "responses" else "messages"
                await cli.stream(path, **{name: [{"role": "user", "content": [part]}]})
    assert all(1500 < usage.prompt < 1600 for usage, _ in ledger.charges)
    assert len(ledger.charges) == 3


# --- a real client ----------------------------------------------------------------------------------------------


@pytest.fixture
def client() -> Callable[..., openai.AsyncOpenAI]:
    def make(cli: Any) -> openai.AsyncOpenAI:
        transport = httpx2.AsyncHTTPTransport(uds=str(cli.place), verify=False)
        http = openai.DefaultAsyncHttpxClient(transport=transport)
        return openai.AsyncOpenAI(base_url="http://gateway/v1", api_key=DUMMY, http_client=http)

    return make


async def test_openais_client_speaks_through_the_socket(program: Start, ledger: Ledger, client: Any) -> None:
    with serve([chat(), chat_stream(), response(), response_stream()]) as server:
        async with program(server.url) as cli, client(cli) as mine:
            asked = ASKED["chat/completions"]
            whole = await mine.chat.completions.create(**asked)
            parts = [part async for part in await mine.chat.completions.create(**asked, stream=True)]
            text = (await mine.responses.create(**ASKED["responses"])).output_text
            events = [each async for each in await mine.responses.create(**ASKED["responses"], stream=True)]
            names = [model.id async for model in mine.models.list()]
    said = "".join(WORDS)
    assert whole.choices[0].message.content == text == said
    assert "".join(part.choices[0].delta.content or "" for part in parts) == said
    assert "".join(each.delta for each in events if each.type == "response.output_text.delta") == said
    assert names == ["m"]
    assert [usage for usage, _ in ledger.charges] == [TokenUsage(prompt=100, completion=20)] * 4


@pytest.mark.parametrize("path", ["chat/completions", "responses"])
async def test_openais_client_gives_up_when_the_money_is_gone(program: Start, client: Any, path: str) -> None:
    with serve([obedient]) as server:
        async with program(server.url, PRICE, account=Ledger(limit=0.02)) as cli, client(cli) as mine:
            make = mine.chat.completions.create if path == "chat/completions" else mine.responses.create
            assert [each async for each in await make(**ASKED[path], stream=True)]
            with pytest.raises(openai.APIStatusError, match="Insufficient credits") as caught:
                await make(**ASKED[path])
    assert caught.value.status_code == 402
    assert len(server.requests) == 1
