"""Programs that ask models through the gateway; more of it in test_gateway_protocols.py and test_gateway_faults.py."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from evogit.llm import SpendingLimitError, TokenUsage
from tests.openai_server import reply, serve
from tests.protocol_replies import chat_stream

from .conftest import ASKED, DUMMY, KEY, Ledger

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


async def test_a_stream_is_cut_when_the_money_is_gone(program: Start) -> None:
    """A word of four bytes is a token of 10 $ a million; 0.001 $ are a hundred of them, less the prompt."""
    ledger = Ledger(limit=0.001)
    with serve([chat_stream(prompt=1, completion=3), chat_stream(["word"] * 3000, gap=0.0002)]) as server:
        async with program(server.url, PRICE, account=ledger) as cli:
            assert "you." in await cli.stream()
            assert not cli.session.ended.is_set()
            text = await cli.stream()
            assert "Insufficient credits: the dollars that were left are used up" in text.splitlines()[-2]
            assert 50 < text.count("word") < 200
            assert isinstance(cli.session.end, SpendingLimitError)
            assert cli.session.ended.is_set()
            while server.connections:
                await asyncio.sleep(0.01)
            again = await cli.ask()
    assert (again.status_code, again.headers["x-should-retry"]) == (402, "false")
    assert again.json()["error"]["code"] == "insufficient_quota"
    assert len(server.requests) == 2
    (first, fine), (cut, failure) = ledger.charges
    assert (first, fine) == (TokenUsage(prompt=1, completion=3), "")
    assert (cut.estimated, failure) == (True, "the dollars that were left are used up")
    assert 0.001 <= ledger.dollars < 0.0012
