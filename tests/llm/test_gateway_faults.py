"""What does not pass the gateway, endpoints that fail, programs that misbehave, and a key that nobody gets to see."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from evogit.core import UsageError
from evogit.llm import CredentialError, RunEndsError, SpendingLimitError, TokenUsage
from evogit.llm.gateway.gateway import Gateway
from evogit.llm.gateway.serving import LONGEST_REQUEST
from tests.openai_server import (
    BAD_KEY,
    CUT,
    NOT_JSON,
    RESET,
    SILENT,
    UNKNOWN_MODEL,
    Behaviour,
    Request,
    refusal,
    reply,
    serve,
)
from tests.protocol_replies import chat_stream, event, message_stream, response_stream

from .conftest import ASKED, KEY, Ledger, Opening
from .test_gateway import PRICE

Start = Callable[..., Any]
pytestmark = pytest.mark.slow

CHAT = "chat/completions"
ELSEWHERE = [
    (CHAT, {"type": "image_url", "image_url": {"url": "https://evil.example/?code=secret"}}),
    ("responses", {"type": "input_image", "image_url": "http://evil.example"}),
    ("responses", {"type": "input_file", "file_id": "file-1"}),
    ("messages", {"type": "image", "source": {"type": "url", "url": "https://evil.example"}}),
    (
        "messages",
        {"type": "tool_result", "content": [{"type": "document", "source": {"type": "file", "file_id": "1"}}]},
    ),
]


def error_of(answer: httpx2.Response) -> str:
    """The kind of error, if the answer has the shape that its protocol has for one."""
    said = answer.json()
    assert isinstance(said["error"]["message"], str)
    if answer.request.url.path.startswith("/v1/messages"):
        assert said["type"] == "error"
    else:
        assert {"param", "code"} < set(said["error"])
    return str(said["error"]["type"])


# --- what does not pass -----------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_what_is_not_allowed_reaches_nobody(programs: Start, ledger: Ledger) -> None:
    posted = ("/v1/embeddings", "/v1/files", "/v1/chat/completions/../files", "/v1//chat/completions")
    wrong = [("POST", path) for path in (*posted, "/chat/completions", "/v1/messages/batches")]
    wrong += [("GET", "/v1/chat/completions"), ("GET", "/v1/responses/resp_1"), ("DELETE", "/v1/models/m")]
    wrong.append(("PUT", "http://evil.example/v1/chat/completions"))
    asked: list[tuple[str, dict[str, Any]]] = [
        *((path, {"model": model}) for path in ASKED for model in ("other", "", None, 7, ["m"])),
        *(
            (path, {"input" if path == "responses" else "messages": [{"role": "user", "content": [part]}]})
            for path, part in ELSEWHERE
        ),
    ]
    with serve() as server:
        async with programs(server.url) as program:
            await refused(program, wrong, asked)
    assert server.requests == []
    assert ledger.charges == []


async def refused(program: Start, wrong: list[tuple[str, str]], asked: list[tuple[str, dict[str, Any]]]) -> None:
    async with program() as cli:
        for method, path in wrong:
            answer = await cli.http.request(method, path, json=ASKED[CHAT])
            assert (answer.status_code, error_of(answer)) == (403, "permission_error"), (method, path)
        assert (await cli.http.head("/")).status_code == 403
    for path, changed in asked:  # each in a session of its own, as one is held ever longer
        async with program() as cli:
            answer = await cli.ask(path, **changed)
            assert (answer.status_code, error_of(answer)) == (403, "permission_error"), changed
    for body in ("", "no JSON", "[]", "[" * 100_000, "\ud800".encode(errors="surrogatepass")):
        async with program() as cli:
            answer = await cli.http.post("/v1/responses", content=body)
            assert (answer.status_code, error_of(answer)) == (400, "invalid_request_error")


async def test_urls_that_are_no_attachments_pass(program: Start) -> None:
    """Such as what a tool was called with, and what people say."""
    used = {"type": "tool_use", "id": "1", "name": "get", "input": {"image_url": "https://x.example", "file_id": "1"}}
    turns = [{"role": "user", "content": "see https://x.example"}, {"role": "assistant", "content": [used]}]
    with serve([message_stream()]) as server:
        async with program(server.url) as cli:
            assert (await cli.ask("messages", messages=turns)).status_code == 200
    assert server.requests[0].body["messages"] == turns


async def test_requests_are_bounded_and_plain(program: Start) -> None:
    async def endless() -> Any:
        for _ in range(LONGEST_REQUEST // 500_000 + 2):
            yield b"x" * 500_000

    with serve() as server:
        async with program(server.url) as cli:
            told = await cli.http.post("/v1/responses", content=b"x" * (LONGEST_REQUEST + 1))
            untold = await cli.http.post("/v1/responses", content=endless())
            packed = await cli.http.post("/v1/responses", content=b"x", headers={"content-encoding": "gzip"})
            assert (await cli.ask()).status_code == 200
    assert [each.status_code for each in (told, untold, packed)] == [413, 413, 415]
    assert len(server.requests) == 1


async def test_a_program_may_speak_any_http(program: Start) -> None:
    body = json.dumps(ASKED[CHAT])
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
    listed = "GET /v1/models HTTP/1.1\r\nHost: x\r\n"
    old = f"POST /v1/chat/completions HTTP/1.0\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    with serve([reply("Fine.", latency=0.05)]) as server:
        async with program(server.url) as cli:
            for sent, statuses in [
                (f"{listed}\r\n{head}\r\n{body}{listed}Connection: close\r\n\r\n", ["200", "200", "200"]),
                (old, ["200"]),
                ("nonsense\r\n\r\n", ["400"]),
                (f"{listed}X: {'y' * 70_000}\r\n\r\n", ["431"]),
                (f"{head}Transfer-Encoding: what\r\n\r\n{body}", ["501"]),
                (f"{head}Upgrade: websocket\r\nConnection: upgrade, close\r\n\r\n{body}", ["200"]),
            ]:
                reader, writer = await asyncio.open_unix_connection(cli.place)
                writer.write(sent.encode())
                said = (await reader.read()).decode()
                writer.close()
                assert re.findall(r"HTTP/1.1 (\d+)", said) == statuses, said
            reader, writer = await asyncio.open_unix_connection(cli.place)
            writer.write(f"{head}Expect: 100-continue\r\nConnection: close\r\n\r\n".encode())
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100")
            writer.write(body.encode())
            assert (await reader.read()).startswith(b"HTTP/1.1 200")
            writer.close()


async def test_a_program_cannot_ask_without_end_before_it_is_answered(program: Start) -> None:
    """More than anybody would is hung up on; what was asked before waits nowhere but in the socket."""
    body = json.dumps(ASKED[CHAT])
    asked = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
    with serve([reply("Fine.", latency=0.02)]) as server:
        async with program(server.url) as cli:
            reader, writer = await asyncio.open_unix_connection(cli.place)
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                for _ in range(30):
                    writer.write(asked * 200)
                    await writer.drain()
                    await reader.readuntil(b"Fine.")
            writer.transport.abort()
            assert (await cli.ask()).status_code == 200
    assert len(server.requests) < 10


async def test_an_endpoint_that_fails_again_and_again_is_asked_ever_less(program: Start, ledger: Ledger) -> None:
    with serve([refusal(500), *[refusal(500)] * 9, reply("Fine."), refusal(500)]) as server:
        async with program(server.url) as cli:
            times = []
            for _ in range(12):
                began = asyncio.get_running_loop().time()
                await cli.ask()
                times.append(asyncio.get_running_loop().time() - began)
    assert times[9] > 0.512  # of a pause of 1 ms
    assert max(times[10:]) < times[9]
    assert len(ledger.charges) == 12


async def test_a_program_cannot_open_connections_without_end(program: Start) -> None:
    with serve() as server:
        async with program(server.url) as cli:
            several = [await asyncio.open_unix_connection(cli.place) for _ in range(40)]
            over = [reader for reader, _ in several[32:]]
            assert [await reader.read() for reader in over] == [b""] * 8
            for _, writer in several:
                writer.close()
            await asyncio.sleep(0.05)
            assert (await cli.ask()).status_code == 200


def test_a_session_needs_models_behind_an_endpoint(at: Opening, ledger: Ledger, tmp_path: Path) -> None:
    (tmp_path / "replies").write_text("hello")
    gateway = Gateway(at("http://127.0.0.1:9/v1", '[models.keyless]\nkey_env = "NOT_SET"\n'))
    for models, error in (
        ([], UsageError),
        ([f"script:{tmp_path}/replies"], UsageError),
        (["keyless"], CredentialError),
    ):
        with pytest.raises(error):
            gateway.session(ledger, models)


async def test_the_socket_is_its_owners_and_goes_with_the_session(at: Opening, ledger: Ledger, tmp_path: Path) -> None:
    session = Gateway(at("http://127.0.0.1:9/v1")).session(ledger, ["m"])
    async with session.listen(tmp_path / "s") as place:
        modes = [stat.S_IMODE(each.stat().st_mode) for each in (place, place.parent)]
        with pytest.raises(UsageError, match="cannot make the socket"):
            await session.listen(tmp_path / "s").__aenter__()
    assert modes == [0o600, 0o700]
    assert not place.exists()
    async with session.listen(tmp_path / "s", mode=0o666) as place:
        assert stat.S_IMODE(place.stat().st_mode) == 0o666
    with pytest.raises(UsageError, match="expected a folder of at most"):
        await session.listen(tmp_path / ("x" * 100)).__aenter__()


# --- endpoints that fail ----------------------------------------------------------------------------------------


async def test_errors_pass_with_their_words_and_nothing_is_asked_twice(program: Start, ledger: Ledger) -> None:
    cases = [
        (refusal(429, "slow down"), 429, "slow down", "the endpoint answered 429: slow down", True),
        (refusal(400, "the context is too long"), 400, "too long", "the endpoint answered 400: the context", True),
        (Behaviour(status=503, body="<b>busy"), 503, "busy", "the endpoint answered 503: <b>busy", True),
        (Behaviour(status=500, body="ab" * 200_000, fault="stalled"), 500, "abab", "the endpoint answered 500", True),
        (UNKNOWN_MODEL, 404, "does not exist", "", True),
        (Behaviour(status=302, headers={"location": "http://evil.example"}), 502, "evil.example", "", True),
        (RESET, 502, "the connection broke", "the connection broke", False),
        (CUT, 502, "the connection broke", "the connection broke", False),
        (NOT_JSON, 502, "the reply is not JSON", "the reply is not JSON: <html>", False),
        (reply("x" * 8_100_000), 502, "the reply has more than", "the reply has more than", False),
    ]
    with serve([behaviour for behaviour, *_ in cases]) as server:
        async with program(server.url, PRICE) as cli:
            for number, (_, status, said, failure, free) in enumerate(cases, 1):
                answer = await cli.ask()
                assert cli.session.end is None
                assert (answer.status_code, said in answer.json()["error"]["message"]) == (status, True)
                assert len(server.requests) == len(ledger.charges) == number
                assert ledger.failures[-1].startswith(failure)
                assert (ledger.charges[-1][0] == TokenUsage()) == free


async def test_bad_credentials_end_the_session(program: Start) -> None:
    for behaviour in (BAD_KEY, refusal(403), refusal(402)):
        ledger = Ledger()
        with serve([behaviour]) as server:
            async with program(server.url, account=ledger) as cli:
                answers = [await cli.ask(), await cli.ask("messages")]
                assert isinstance(cli.session.end, CredentialError)
                assert server.url in str(cli.session.end)
        assert [answer.status_code for answer in answers] == [403, 403]
        assert [answer.headers["x-should-retry"] for answer in answers] == ["false", "false"]
        assert "TEST_KEY" not in answers[0].text + answers[1].text
        assert len(server.requests) == len(ledger.charges) == 1
        assert ledger.charges[0][0] == TokenUsage()


async def test_an_endpoint_that_asks_to_wait_is_left_alone(program: Start, ledger: Ledger) -> None:
    with serve([refusal(429, "slow down", retry_after="0.3"), reply("Fine.")]) as server:
        async with program(server.url) as cli:
            first = await cli.ask()
            began = asyncio.get_running_loop().time()
            second = await cli.ask()
            assert asyncio.get_running_loop().time() - began >= 0.25
    assert (first.status_code, first.headers["retry-after"], second.status_code) == (429, "0.3", 200)


async def test_nobody_there_costs_nothing_and_is_asked_ever_less(programs: Start, ledger: Ledger) -> None:
    with serve() as server:
        url = server.url
    async with programs(url, calls=1) as program:
        for _ in range(20):  # sessions that give up at once
            async with program() as cli:
                assert (await cli.ask()).status_code == 502
            if max(ledger.waits, default=0) > 0.25:  # of a pause of 1 ms
                break
    assert max(ledger.waits) > 0.25
    assert all(usage == TokenUsage() for usage, _ in ledger.charges)


async def test_an_endpoint_that_falls_silent_is_given_up(program: Start, ledger: Ledger) -> None:
    with serve([SILENT, chat_stream(fault="stalled", usage=False), chat_stream(["x"] * 9999, gap=0.01)]) as server:
        async with program(server.url, 'first_byte = "200ms"\n') as cli:
            silent, stalled = await cli.ask(), await cli.stream()
        async with program(server.url, 'total = "500ms"\n') as cli:
            slow = await cli.stream()
        while server.connections:
            await asyncio.sleep(0.01)
    assert (silent.status_code, error_of(silent)) == (502, "api_error")
    assert "nothing came for 0.2 s" in stalled
    assert "no complete reply within 0.5 s" in slow
    assert ledger.failures == ["nothing came for 0.2 s"] * 2 + ["no complete reply within 0.5 s"]
    assert all(usage.estimated and usage.prompt > 5 for usage, _ in ledger.charges)


async def test_streams_of_nonsense_do_no_harm(program: Start, ledger: Ledger) -> None:
    usages = ({"prompt_tokens": -1, "completion_tokens": "x"}, [], 7, {"prompt_tokens": 10**30, "completion_tokens": 1})
    choices = (None, 7, [None], [{"delta": None}], [{"delta": {"tool_calls": [1]}}])
    odd = [event({"choices": value}) for value in choices]
    odd += [event({"choices": [{"delta": {"content": "x" * 40}}], "usage": usage}) for usage in usages]
    odd += [": a comment\n\n", "data: {not json}\n\n", "data: [1]\n\n", "event: x\r\n\r\n"]
    odd.append("data: " + "[" * 1500 + "\n\n")
    whole = "".join(odd)
    with serve([Behaviour(pieces=each) for each in (odd, list(whole), ["data: " + "x" * 9_000_000])]) as server:
        async with program(server.url) as cli:
            assert await cli.stream() == whole
            assert await cli.stream() == whole
            assert "the reply does not end" in await cli.stream()
    assert [usage.completion for usage, _ in ledger.charges] == [40, 40, 0]


# --- the end of calls -------------------------------------------------------------------------------------------


async def test_a_program_that_hangs_up_ends_its_call_and_is_charged(program: Start, ledger: Ledger) -> None:
    with serve([chat_stream(["x" * 40], usage=False, fault="stalled"), SILENT]) as server:
        async with program(server.url) as cli:
            async with cli.http.stream("POST", f"/v1/{CHAT}", json=ASKED[CHAT] | {"stream": True}) as answer:
                async for line in answer.aiter_lines():
                    if "xxx" in line:
                        break
            while server.connections:
                await asyncio.sleep(0.01)
            with pytest.raises(httpx2.ReadTimeout):
                await cli.http.post(f"/v1/{CHAT}", json=ASKED[CHAT], timeout=httpx2.Timeout(60, read=2))
            while server.connections:
                await asyncio.sleep(0.01)
    assert [failure for _, failure in ledger.charges] == ["broken off", "broken off"]
    assert [usage.completion for usage, _ in ledger.charges] == [10, 0]
    assert all(usage.estimated and usage.prompt > 5 for usage, _ in ledger.charges)


async def test_a_session_that_ends_charges_what_is_in_flight(program: Start, ledger: Ledger) -> None:
    with serve([SILENT]) as server:
        async with program(server.url) as cli:
            asking = asyncio.create_task(cli.ask())
            while not server.requests:
                await asyncio.sleep(0.01)
        with pytest.raises(httpx2.TransportError):
            await asking
    assert [failure for _, failure in ledger.charges] == ["broken off"]


async def test_a_run_that_ends_is_told(program: Start) -> None:
    class Ending(Ledger):
        def check(self) -> None:
            raise RunEndsError("the run ends, so no model is asked again")

    with serve() as server:
        async with program(server.url, account=Ending()) as cli:
            answers = [await cli.ask(path) for path in ASKED]
            assert isinstance(cli.session.end, RunEndsError)
    assert [(each.status_code, error_of(each)) for each in answers[2:]] == [(403, "permission_error")]
    assert "the run ends" in answers[0].text
    assert server.requests == []


async def test_no_more_calls_are_in_flight_than_an_endpoint_may_have(program: Start) -> None:
    most = 0

    def slow(request: Request) -> Behaviour:
        nonlocal most
        most = max(most, server.connections)
        return reply("Fine.", latency=0.02)

    with serve([slow]) as server:
        async with program(server.url, calls=2) as cli:
            answers = await asyncio.gather(*(cli.ask() for _ in range(8)))
    assert [answer.status_code for answer in answers] == [200] * 8
    assert most == 2


async def test_one_question_that_is_too_dear_does_not_mean_that_there_is_no_money(program: Start) -> None:
    ledger = Ledger(limit=5.0)
    with serve() as server:
        async with program(server.url, "price = { input = 3, output = 15 }", account=ledger) as cli:
            huge = await cli.ask(messages=[{"role": "user", "content": "x" * 7_900_000}])
            end = cli.session.end
    assert (huge.status_code, server.requests, ledger.charges) == (402, [], [])
    assert isinstance(end, SpendingLimitError)
    assert (end.limit, str(end)) == (None, "a question would take all dollars left")
    ledger = Ledger(limit=0.001)  # which the prompt alone would take
    with serve() as server:
        async with program(server.url, PRICE, account=ledger) as cli:
            answer = await cli.ask(messages=[{"role": "user", "content": "word" * 2000}])
    assert (answer.status_code, server.requests, ledger.charges) == (402, [], [])


# --- the key ----------------------------------------------------------------------------------------------------


def spelt(key: str) -> str:
    return "".join(f"\\u{ord(letter):04x}" for letter in key)


async def test_the_key_is_nowhere(program: Start, ledger: Ledger, caplog: pytest.LogCaptureFixture) -> None:
    said = f"Your key is {KEY}"
    leaks: list[Behaviour] = [
        reply(said),
        Behaviour(body=reply("KEY").body.replace("KEY", spelt(KEY))),
        Behaviour(body=said),
        Behaviour(body=reply("x").body, headers={"x-request-id": KEY, "set-cookie": KEY, "x-key": KEY}),
        refusal(400, said),
        Behaviour(status=400, body=f'{{"error": {{"message": "{spelt(KEY)}"}}}}'),
        Behaviour(status=500, body="x" * 190 + KEY),
        Behaviour(status=307, headers={"location": f"http://evil.example/{KEY}"}),
        chat_stream([said]),
        response_stream([said]),
        message_stream([said]),
        Behaviour(pieces=[event({"choices": [{"delta": {"content": "KEY"}}]}).replace("KEY", spelt(KEY))]),
        Behaviour(pieces=[f"data: {said}\n\n", f": {said}\n\n", f"event: {KEY}\ndata: {{}}\n\n"]),
        Behaviour(pieces=[f"data: {said[:20]}", f"{said[20:]}\n\n"]),
        Behaviour(pieces=[f"data: {said}"], fault="cut"),
        refusal(401, said),
    ]
    caplog.set_level(logging.INFO)
    seen = ""
    with serve(leaks) as server:
        async with program(server.url) as cli:
            for number, _ in enumerate(leaks, 1):
                answer = await cli.ask(stream=number > 8)
                seen += f"{answer.status_code} {answer.headers} {answer.text} {cli.session.end!r} {cli.session.end}\n"
                assert len(server.requests) == number
                assert KEY in str(server.requests[-1].headers)
            assert isinstance(cli.session.end, CredentialError)
    logged = "\n".join(record.getMessage() for record in caplog.records)
    assert KEY not in seen + logged + str(ledger.charges)
    assert KEY not in seen.encode().decode("unicode_escape", errors="replace")
    assert seen.count("[redacted]") >= 12
