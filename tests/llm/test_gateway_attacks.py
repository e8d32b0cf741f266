"""What a program or an endpoint may try to have more spent than is counted, or to hold up others; none of it works."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evogit.llm import Price, TokenUsage
from evogit.llm.gateway.gateway import Gateway
from evogit.llm.gateway.reading import UnreadableError
from evogit.llm.reader import ReaderProcess
from tests.clock import until, wait_until
from tests.openai_server import Behaviour, reply, serve
from tests.protocol_replies import event

from .conftest import ASKED, Ledger, Opening, question
from .test_gateway import PRICE, longest_turn, raw

Start = Callable[..., Any]
CHAT = "chat/completions"
pytestmark = pytest.mark.slow
USER = [{"role": "user", "content": "How are you?"}]


def sound(**more: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "AAAA"} | more}]}]


def so_far(completion: int, finish: str | None = None) -> str:
    usage = {"prompt_tokens": 20, "completion_tokens": completion}
    choice = {"index": 0, "delta": {"content": "word "}, "finish_reason": finish}
    return event({"choices": [choice], "usage": usage})


# --- more than is counted ---------------------------------------------------------------------------------------


async def test_who_leaves_a_stream_that_tells_its_usage_so_far_pays_for_all_of_it(program: Start) -> None:
    ledger = Ledger(limit=1.0)
    with serve([Behaviour(pieces=[so_far(n) for n in range(1, 9)], fault="stalled")]) as server:
        async with program(server.url, PRICE, account=ledger) as cli:
            asked = ASKED[CHAT] | {"stream": True, "stream_options": {"continuous_usage_stats": True}}
            async with cli.http.stream("POST", f"/v1/{CHAT}", json=asked) as answer:
                async for _ in answer.aiter_lines():
                    break
            await until(lambda: ledger.charges)
    [(usage, failure)] = ledger.charges
    assert (failure, usage.estimated, usage.completion) == ("broken off", True, 16_384)
    assert server.requests[0].body["stream_options"] == {"include_usage": True}
    stayed = Ledger(limit=1.0)
    with serve([Behaviour(pieces=[so_far(1), so_far(2), so_far(3, "stop")])]) as server:
        async with program(server.url, PRICE, account=stayed) as cli:
            await cli.stream()
    assert stayed.charges == [(TokenUsage(prompt=20, completion=3), "")]


async def test_what_may_have_been_written_is_paid(program: Start) -> None:
    """A proxy that waits no longer does not end what the endpoint behind it writes."""
    ledger = Ledger(limit=1.0)
    packed = Behaviour(body=reply("x").body, headers={"content-encoding": "gzip"})
    wrong = Behaviour(status=400, body="x", headers={"content-encoding": "br"})
    with serve([Behaviour(status=504, body="<html>"), Behaviour(status=524, body="{}"), packed, wrong]) as server:
        async with program(server.url, PRICE, account=ledger) as cli:
            assert [(await cli.ask()).status_code for _ in range(4)] == [504, 524, 502, 502]
    assert [(usage.estimated, usage.completion) for usage, _ in ledger.charges] == [(True, 16_384)] * 4


async def test_what_is_billed_is_counted_wherever_it_stands_if_it_is_a_number(program: Start, ledger: Ledger) -> None:
    """Reasoning that is no part of the completion, what is written to a cache, and no text for what is none."""
    few = {"prompt_tokens": 20, "completion_tokens": 3}
    chances = [{"token": "Fine", "top_logprobs": [{"token": "x" * 9}] * 500}]
    usages = [few | {"total_tokens": 523}, few | {"prompt_tokens_details": {"cache_write_tokens": 15}}, few]
    usages.append({"prompt_tokens": True, "completion_tokens": True})
    choice = {"message": {"content": "Fine."}, "logprobs": {"content": chances}}
    bodies = [json.dumps({"choices": [choice], "usage": usage}) for usage in usages]
    with serve([Behaviour(body=body) for body in bodies]) as server:
        async with program(server.url, PRICE) as cli:
            for _ in bodies:
                await cli.ask(logprobs=True, top_logprobs=20)
    counts = [TokenUsage(prompt=20, completion=503), TokenUsage(prompt=20, written=15, completion=3)]
    counts.append(TokenUsage(prompt=20, completion=3))
    assert [usage for usage, _ in ledger.charges[:3]] == counts
    assert ledger.charges[3][0].estimated


async def test_a_ceiling_is_a_number_by_the_name_that_the_endpoint_heeds(program: Start) -> None:
    ceilings: list[dict[str, Any]] = [{"max_tokens": True}, {"max_tokens": 10.5}, {"max_completion_tokens": 10**12}]
    ceilings.append({"max_tokens": 1, "max_completion_tokens": 10**6})
    ceilings.append({"max_output_tokens": 10**6, "min_tokens": 10**6, "ignore_eos": True})
    for more in ceilings:
        with serve() as server:
            async with program(server.url, PRICE, account=Ledger(limit=0.1)) as cli:
                assert (await cli.ask(**more)).status_code == 200
        [request] = server.requests
        assert type(request.body["max_tokens"]) is int
        assert request.body.keys() == {*ASKED[CHAT], "max_tokens"}


async def test_caches_are_not_written_where_nobody_tells_what_they_cost(program: Start) -> None:
    part = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "ttl": "1h"}}
    tool = {"type": "function", "function": {"name": "f"}, "cache_control": {"type": "ephemeral"}}
    with serve() as server:
        async with program(server.url) as cli:
            await cli.ask(messages=[{"role": "user", "content": [part]}], tools=[tool])
    assert "cache_control" not in server.requests[0].text
    assert server.requests[0].body["messages"][0]["content"] == [{"type": "text", "text": "x"}]


async def test_what_is_called_a_picture_is_none(program: Start) -> None:
    data = {"file_data": "AAAA", "media_type": "image/png"}
    parts: list[dict[str, Any]] = [{"type": "file", "file": data}, {"type": "base64", **data}]
    several = [sound(media_type="image/png"), *([{"role": "user", "content": [part]}] for part in parts)]
    with serve() as server:
        async with program(server.url, PRICE, account=Ledger(limit=1.0)) as cli:
            for messages in several:
                assert (await cli.ask(messages=messages)).status_code == 403
    assert server.requests == []


def test_a_price_of_writing_is_set_aside_in_every_protocol() -> None:
    dear = Price(prompt=1, cached=0.1, completion=0, written=2)
    assert dear.at_most(TokenUsage(prompt=10**6)) == 2.0


# --- more than others' share ------------------------------------------------------------------------------------


async def test_what_is_too_large_when_it_is_read_is_refused(program: Start) -> None:
    """Numbers that are longer written out, and thoughts that are no setting."""
    grown = b'{"model": "m", "messages": [' + b"1e15," * 1_500_000 + b"1]}"
    with serve() as server:
        async with program(server.url) as cli:
            assert (await cli.http.post(f"/v1/{CHAT}", content=grown)).status_code == 413
            assert (await cli.ask(thinking={"x": "y" * 100_000})).status_code == 413
            assert (await cli.ask()).status_code == 200
    assert len(server.requests) == 1


async def test_an_endpoint_that_sends_bytes_one_by_one_holds_nobody(program: Start) -> None:
    """In the same turn of the loop all that came at once would be read."""
    few, many = ([" "] * 100 + ["x"], [" "] * 20_000 + ["x"])
    with serve([Behaviour(pieces=few), Behaviour(pieces=many)]) as server:
        async with program(server.url) as cli:
            await cli.ask()
            began = time.thread_time()
            held, _ = await longest_turn(cli.ask(stream=True))
    assert held < (time.thread_time() - began) / 10


async def test_a_session_that_fills_its_room_alone_waits(at: Opening, ledger: Ledger, tmp_path: Path) -> None:
    """Two bodies that are announced and never come."""
    with serve() as server:
        gateway = Gateway(models := at(server.url))
        sessions = [gateway.session(ledger, ["m"]) for _ in range(2)]
        async with sessions[0].listen(tmp_path / "a") as greedy, sessions[1].listen(tmp_path / "b") as other:
            begun = [await asyncio.open_unix_connection(greedy) for _ in range(2)]
            for _, writer in begun:
                writer.write(b"POST /v1/responses HTTP/1.1\r\nHost: x\r\nContent-Length: 8000000\r\n\r\n")
            body = json.dumps(ASKED[CHAT]).encode()
            head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
            asked = head % len(body) + body
            waiting = asyncio.create_task(raw(greedy, asked))
            assert (await raw(other, asked)).startswith(b"HTTP/1.1 200")
            assert not waiting.done()
            begun[0][1].transport.abort()
            assert (await waiting).startswith(b"HTTP/1.1 200")
            begun[1][1].transport.abort()
        await gateway.close()
        await models.close()


async def test_a_program_that_leaves_while_it_is_read_is_ended(program: Start) -> None:
    """Each time a process begins anew."""
    bomb = b'{"model": "m", "messages": [' + b"[]," * 900_000 + b"[]]}"
    sent = b"POST /v1/responses HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(bomb) + bomb
    with serve() as server:
        async with program(server.url) as cli:
            for _ in range(3):
                _, writer = await asyncio.open_unix_connection(cli.place)
                writer.write(sent)
                await writer.drain()
                await asyncio.sleep(0.1)
                writer.transport.abort()
                await asyncio.sleep(0.05)
            await until(lambda: cli.session.end)
            assert (await cli.ask()).status_code == 403
    assert server.requests == []


# --- the process that reads -------------------------------------------------------------------------------------

OWNER = """
import asyncio, sys
from evogit.llm.reader import ReaderProcess
async def main():
    reader = ReaderProcess()
    await reader.ask({"of": "count"}, b"{}")
    print(reader._process.pid, flush=True)
    await reader.ask({"of": "plain"}, b"[" + b"[]," * 2_600_000 + b"[]]")
asyncio.run(main())
"""


def test_the_reader_dies_with_its_engine_in_the_middle_of_its_work() -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True)
    assert owner.stdout
    reader = Path("/proc") / owner.stdout.readline().strip()
    limits = (reader / "limits").read_text()
    os.kill(owner.pid, signal.SIGKILL)
    owner.communicate()
    wait_until(lambda: not reader.exists() or "\nState:\tZ" in (reader / "status").read_text(), "the reader's end")
    [cpu] = [line.split()[3] for line in limits.splitlines() if line.startswith("Max cpu time")]
    assert int(cpu) < 60


async def test_who_asked_for_something_unreadable_leaves_a_reader_that_works() -> None:
    reader = ReaderProcess()
    try:
        with pytest.raises(UnreadableError):
            await reader.ask({"of": "request", "path": f"/v1/{CHAT}", "models": {"m": "m"}}, b'{"model": "m"')
        asked = json.dumps({"model": "m", "messages": USER, "thinking": {"x": "y" * 90_000}}).encode()
        with pytest.raises(UnreadableError, match="little time and memory"):
            await reader.ask({"of": "request", "path": f"/v1/{CHAT}", "models": {"m": "m"}}, asked)
        told, _ = await reader.ask({"of": "count"}, b"{}")
        assert told == {"tokens": 1}
    finally:
        await reader.close()


# --- the same for questions of the engine's own -----------------------------------------------------------------


async def test_an_editor_pays_for_what_a_proxy_gave_up_and_unpacks_nothing(at: Opening) -> None:
    ledger = Ledger(limit=1.0)
    bomb = Behaviour(body=reply("x").body, headers={"content-encoding": "gzip"})
    with serve([Behaviour(status=504, body="<html>"), bomb, reply("Fine."), reply("Fine.")]) as server:
        models = at(server.url, PRICE)
        assert await models.get("m").ask(question(), ledger) == "Fine."
        await models.close()
    assert ledger.failures[0].startswith("the endpoint answered 504")
    assert "got one in 'gzip'" in ledger.failures[1]
    assert [usage.completion for usage, _ in ledger.charges] == [16_384, 16_384, 20]
    assert {request.headers["accept-encoding"] for request in server.requests} == {"identity"}
