"""Programs that ask models through the gateway; more of it in test_gateway_protocols.py and test_gateway_faults.py."""

from __future__ import annotations

import asyncio
import json
import time
import unicodedata
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from evogit.llm import ModelError, SpendingLimitError, TokenUsage
from evogit.llm.bounds import most_tokens
from tests.clock import cpu_seconds, until
from tests.openai_server import SILENT, Behaviour, reply, serve
from tests.protocol_replies import obedient

from .conftest import ASKED, DUMMY, KEY, Ledger, Opening, question

PRICE = "price = {input = 1, cached = 0.5, output = 10}\n"

Start = Callable[..., Any]


async def test_a_call_passes_with_our_key_and_is_charged(program: Start, ledger: Ledger) -> None:
    more = PRICE + 'id = "real-name"\nmax_tokens = 99\n'
    asked = ASKED["chat/completions"]
    with serve([reply("Fine.", prompt=1000, cached=200, completion=50)]) as server:
        async with program(server.url, more) as cli:
            sent = asked | {"service_tier": "priority", "models": ["dear"], "temperature": 0.5, "stream": False}
            answer = await cli.http.post("/v1/chat/completions", json=sent, headers={"x-custom": "secret plan"})
    assert answer.status_code == 200
    assert answer.json()["choices"][0]["message"]["content"] == "Fine."
    assert ledger.charges == [(TokenUsage(prompt=1000, cached=200, completion=50), "")]
    [request] = server.requests
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert DUMMY not in str(request)
    assert "secret plan" not in str(request)
    passed = {"messages": asked["messages"], "temperature": 0.5, "stream": False}
    assert request.body == {"model": "real-name", "max_tokens": 99, **passed}


async def test_a_reply_has_no_more_tokens_than_what_is_left_pays_for(program: Start) -> None:
    """A token of a reply is 10 $ a million; 0.02 $ are two thousand of them, less the prompt."""
    ledger = Ledger(limit=0.02)
    with serve([obedient]) as server:
        async with program(server.url, PRICE, account=ledger) as cli:
            assert (await cli.ask(max_tokens=10**6)).status_code == 200
            assert not cli.session.ended.is_set()
            again = await cli.ask()
            assert isinstance(cli.session.end, SpendingLimitError)
            assert cli.session.ended.is_set()
    [request] = server.requests
    assert 1800 < request.body["max_tokens"] < 2000
    assert (again.status_code, again.headers["x-should-retry"]) == (402, "false")
    assert again.json()["error"]["code"] == "insufficient_quota"
    assert 0.018 < ledger.dollars <= 0.02


async def test_a_program_that_hangs_up_pays_for_what_may_be_billed_and_is_ended(program: Start) -> None:
    ledger = Ledger(limit=1.0)
    with serve([SILENT]) as server:
        async with program(server.url, PRICE, account=ledger) as cli:
            for number in range(1, 4):
                asking = asyncio.create_task(cli.ask(max_tokens=10_000))
                while len(server.requests) < number:
                    await asyncio.sleep(0.01)
                assert cli.session.end is None
                asking.cancel()
                while len(ledger.charges) < number:
                    await asyncio.sleep(0.01)
            refused = await cli.ask()
    assert (refused.status_code, "hung up on 3 calls" in refused.text) == (403, True)
    assert [usage.completion for usage, _ in ledger.charges] == [10_000] * 3
    assert all(usage.estimated and usage.prompt > 100 for usage, _ in ledger.charges)
    assert len(server.requests) == 3


BRACKETS = "[]," * 1_300_000 + "[]"
PIECES = b"".join(b"1\r\n \r\n" for _ in range(10_000))


async def longest_turn(work: Coroutine[Any, Any, Any]) -> tuple[float, Any]:
    """The longest time in which the loop did nothing else, of this process's CPU, and what came of the work."""
    longest = 0.0

    async def turn() -> None:
        nonlocal longest
        while True:
            began = time.thread_time()
            await asyncio.sleep(0.001)
            longest = max(longest, time.thread_time() - began)

    turning = asyncio.create_task(turn())
    try:
        answer = await work
        return longest, answer
    finally:
        turning.cancel()


async def raw(place: Path, sent: bytes) -> bytes:
    """What comes back for these bytes, until the gateway hangs up."""
    reader, writer = await asyncio.open_unix_connection(place)
    writer.write(sent)
    try:
        return await reader.read()
    finally:
        writer.transport.abort()


@pytest.mark.slow
async def test_nothing_that_a_program_asks_holds_the_engine(program: Start) -> None:
    """What is sent and answered is read elsewhere: a turn of the loop is a fraction of what it takes to read it."""
    bomb = b'{"model": "m", "messages": [' + BRACKETS.encode() + b"]}"
    began = time.thread_time()
    json.loads(bomb)
    alone = time.thread_time() - began
    large = f'{{"choices": [{BRACKETS}]}}'
    replies = [
        reply("Fine."),
        reply("Fine."),
        Behaviour(body=large),
        Behaviour(pieces=[f"data: [{BRACKETS[-900_000:]}]\n\n"]),
        Behaviour(pieces=["data: {}\n\n" * 10_000]),
        Behaviour(body=reply("x").body, headers={"content-encoding": "gzip"}),
    ]
    with serve(replies) as server:
        async with program(server.url, "context = 1000000\n") as cli:
            await cli.ask()  # processes and connections are there
            head = b"POST /v1/responses HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
            for expected, work in (
                (200, cli.http.post("/v1/messages/count_tokens", content=bomb)),
                (200, cli.http.post("/v1/chat/completions", content=bomb)),
                (400, cli.http.post("/v1/chat/completions", content=b"[" * 4_000_000)),
                (200, cli.ask()),
                (200, cli.ask(stream=True)),
                (200, cli.ask(stream=True)),
                (502, cli.ask()),
                (413, raw(cli.place, head + PIECES)),
            ):
                held, answer = await longest_turn(work)
                status = int(answer.split()[1]) if isinstance(answer, bytes) else answer.status_code
                assert (status, held < alone / 2) == (expected, True), (held, alone)


@pytest.mark.slow
async def test_no_reply_holds_the_engine_that_asked_for_it(at: Opening, ledger: Ledger) -> None:
    """A megabyte of brackets, which an editor's endpoint answers."""
    body = f'{{"choices": [{"[]," * 332_000}[]]}}'
    began = time.thread_time()
    json.dumps(json.loads(body), ensure_ascii=False)
    alone = time.thread_time() - began
    with serve([Behaviour(body=body)]) as server:
        models = at(server.url, retries=0)
        model = models.get("m")

        async def ask() -> str:
            with pytest.raises(ModelError, match="no choices"):
                await model.ask(question(), ledger)
            return ""

        await ask()
        held, _ = await longest_turn(ask())
        await models.close()
    assert held < alone


def test_more_tokens_than_a_text_can_have_are_counted_in_little_time() -> None:
    """Normalising a run of marks takes the square of its length, and one character may become eleven."""
    marks, plain = "a" + "\u0301\u0323" * 40_000, "\u6f22" * 80_000
    assert cpu_seconds(lambda: most_tokens(marks)) < 50 * cpu_seconds(lambda: most_tokens(plain))
    for text in ("\ufdfa" * 100, "\u00e9\u0323" * 300, "\u3300" * 250, "x" * 300, "\U0001d160" * 201, "\ud800"):
        normal = unicodedata.normalize("NFKC", text)
        assert most_tokens(text) >= max(len(each.encode(errors="surrogatepass")) for each in (text, normal))


@pytest.mark.slow
async def test_bodies_in_flight_take_no_more_than_a_session_may_hold(program: Start) -> None:
    """The third body of eight megabytes waits in its socket until the first was answered; small ones wait behind it."""
    large = b'{"model": "m", "messages": [{"role": "user", "content": "' + b"x" * 7_900_000 + b'"}]}'
    with serve([SILENT]) as server:
        async with program(server.url) as cli:
            waiting = [asyncio.create_task(cli.http.post("/v1/chat/completions", content=large)) for _ in range(2)]
            await until(lambda: len(server.requests) == 2)
            more = asyncio.create_task(cli.http.post("/v1/chat/completions", content=large))
            await asyncio.sleep(0.3)
            assert len(server.requests) == 2
            waiting[0].cancel()
            await until(lambda: len(server.requests) == 3)
            for each in (*waiting, more):
                each.cancel()


async def test_what_is_counted_is_bounded_by_the_context_of_the_model(program: Start) -> None:
    with serve() as server:
        async with program(server.url, "context = 1000\n") as cli:
            fine = await cli.http.post("/v1/messages/count_tokens", content=b'{"system": "' + b"x" * 7000 + b'"}')
            large = await cli.http.post("/v1/messages/count_tokens", content=b"x" * 9000)
    assert (fine.status_code, large.status_code) == (200, 413)


@pytest.mark.parametrize(
    ("path", "more", "refused"),
    [
        ("responses", {"previous_response_id": "resp_1"}, True),
        ("responses", {"input": [{"type": "item_reference", "id": "msg_1"}]}, True),
        ("responses", {"input": [{"id": "msg_1"}]}, True),
        ("responses", {"store": True, "context_management": [{"type": "compaction"}], "conversation": "c"}, False),
        ("chat/completions", {"prediction": {"type": "content", "content": "x"}, "n": 9, "store": True}, False),
        ("chat/completions", {"prompt_cache_retention": "24h", "tools": [{"function": {"name": "x"}}]}, False),
        ("responses", {"tools": [{"type": "function_shell_hosted"}, {"name": "web"}]}, False),
        ("messages", {"tools": [{"type": "bash_web"}, {"name": "x"}], "context_management": {"edits": []}}, False),
    ],
)
async def test_what_is_not_known_to_be_priced_does_not_pass(program: Start, path: str, more: dict, refused: bool):
    with serve() as server:
        async with program(server.url) as cli:
            answer = await cli.ask(path, **more)
    assert (answer.status_code == 403) == refused
    assert [request.body for request in server.requests] == ([] if refused else [ASKED[path]])


async def test_caches_are_those_of_the_price_and_thinking_is_within_the_reply(program: Start) -> None:
    part = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "ttl": "1h"}}
    thinking = {"type": "enabled", "budget_tokens": 50_000}
    with serve() as server:
        async with program(server.url, PRICE, account=Ledger(limit=0.1)) as cli:
            await cli.ask(
                "messages", messages=[{"role": "user", "content": [part]}], max_tokens=60_000, thinking=thinking
            )
    [request] = server.requests
    assert request.body["messages"][0]["content"] == [{**part, "cache_control": {"type": "ephemeral"}}]
    assert 9_000 < request.body["max_tokens"] < 10_000
    assert request.body["thinking"] == {"type": "enabled", "budget_tokens": request.body["max_tokens"] * 3 // 4}


async def test_what_costs_nobody_knows_what_is_refused_under_a_limit(program: Start) -> None:
    sound = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}}
    ledger = Ledger(limit=1.0)
    with serve() as server:
        async with program(server.url, PRICE, account=ledger) as cli:
            answer = await cli.ask(messages=[{"role": "user", "content": [sound]}])
    assert (answer.status_code, server.requests, ledger.dollars) == (403, [], 0.0)
