from __future__ import annotations

import asyncio
import random
import re
from datetime import UTC, datetime
from typing import Any

import pytest

from evogit.core import EvoGitError
from evogit.engine.halts import AwakeLoop
from evogit.llm import CredentialError, ModelError, SpendingLimitError, TokenUsage, UnknownModelError
from evogit.llm.registry import OpenModels
from evogit.llm.replies import LONGEST_WAIT, retry_after
from tests.clock import stop_this_process
from tests.openai_server import (
    BAD_KEY,
    CUT,
    EMPTY,
    HUGE,
    NOT_JSON,
    RESET,
    SILENT,
    STALLED,
    UNKNOWN_MODEL,
    Behaviour,
    Request,
    answer,
    echo_of_the_key,
    refusal,
    reply,
    serve,
)
from tests.protocol_replies import chat_stream, event

from .conftest import KEY, Ledger, Opening, question

PRICE = "price = {input = 1, cached = 0.5, output = 10}\n"
GUESS = TokenUsage(prompt=6, estimated=True)


async def ask(models: OpenModels, ledger: Ledger) -> str:
    try:
        return await models.get("m").ask(question(), ledger)
    finally:
        await models.close()


async def test_a_reply_and_what_it_cost(at: Opening, ledger: Ledger) -> None:
    with serve([reply("Fine.", prompt=1000, cached=200, completion=50)]) as server:
        models = at(
            server.url, PRICE + 'id = "real-name"\ntemperature = 0.5\nmax_tokens = 99\nreasoning_effort = "low"'
        )
        assert await ask(models, ledger) == "Fine."
    assert ledger.charges == [(TokenUsage(prompt=1000, cached=200, completion=50), "")]
    assert ledger.dollars == pytest.approx((800 * 1 + 200 * 0.5 + 50 * 10) / 1e6)
    [request] = server.requests
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body == {
        "model": "real-name",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "How are you?"}],
        "temperature": 0.5,
        "max_tokens": 99,
        "reasoning_effort": "low",
        "stream": True,
        "stream_options": {"include_usage": True},
    }


async def test_what_the_environment_says_for_openai_goes_nowhere_else(at: Opening, ledger: Ledger, monkeypatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_ADMIN_KEY", "OPENAI_WEBHOOK_SECRET"):
        monkeypatch.setenv(name, "canary")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Extra: canary\nAuthorization: Bearer canary")
    with serve([reply("Fine.")]) as server:
        assert await ask(at(server.url), ledger) == "Fine."
    [request] = server.requests
    assert "canary" not in str(request.headers)
    assert request.headers["authorization"] == f"Bearer {KEY}"


async def test_a_reply_that_is_streamed_is_what_it_would_be_as_a_whole(at: Opening) -> None:
    words = ["Fi", "ne, ", f"key {KEY[:9]}", f"{KEY[9:]}.", "\ud800"]
    late = chat_stream(["Fine."], prompt=1000, cached=200, completion=50)
    long = chat_stream(["x" * 40_000], prompt=1000, completion=9000)
    uncounted = chat_stream(["Fine."], usage=False)
    unending = chat_stream(["Fine."], usage=False, fault="stalled")
    with serve([chat_stream(words), late, long, uncounted, unending]) as server:
        models = at(server.url, PRICE)
        ledger = Ledger()
        told = [await models.get("m").ask(question(), ledger) for _ in range(5)]
        await models.close()
    assert told == ["Fine, key [redacted].?", "Fine.", "x" * 40_000, "Fine.", "Fine."]
    assert [usage for usage, _ in ledger.charges[:3]] == [
        TokenUsage(prompt=100, completion=20),
        TokenUsage(prompt=1000, cached=200, completion=50),
        TokenUsage(prompt=1000, completion=9000),
    ]
    assert all(usage.estimated and not failure for usage, failure in ledger.charges[3:])
    assert len(server.requests) == 5


def chunk(text: str = "", finish: str | None = None, index: int = 0, **more: Any) -> str:
    return event({"choices": [{"index": index, "delta": {"content": text}, "finish_reason": finish}]} | more)


def counted(prompt: int, completion: int) -> dict[str, int]:
    return {"prompt_tokens": prompt, "completion_tokens": completion}


async def test_of_a_stream_that_says_too_much_one_reply_and_the_larger_usage_count(at: Opening, ledger: Ledger) -> None:
    two = [chunk("Fi"), chunk("NO", "stop", 1), chunk("ne."), chunk("", "stop")]
    usages = [chunk("Fine.", "stop", usage=counted(100, 20)), event({"choices": [], "usage": counted(100, 5)})]
    with serve([Behaviour(pieces=two + usages[1:]), Behaviour(pieces=usages)]) as server:
        models = at(server.url)
        assert [await models.get("m").ask(question(), ledger) for _ in range(2)] == ["Fine.", "Fine."]
        await models.close()
    assert [usage for usage, _ in ledger.charges] == [
        TokenUsage(prompt=100, completion=5),
        TokenUsage(prompt=100, completion=20),
    ]


async def test_a_reply_waits_for_no_usage_and_what_came_of_one_is_charged(at: Opening, ledger: Ledger) -> None:
    with serve([Behaviour(pieces=[chunk("Fine.", "stop")], fault="stalled")]) as server:
        async with asyncio.timeout(30):
            assert await ask(at(server.url, 'total = "30s"'), Ledger()) == "Fine."
    thinking = event({"choices": [{"delta": {"reasoning_content": "x" * 400}}]})
    with serve([Behaviour(pieces=[thinking, chunk("y" * 400)], fault="cut")]) as server, pytest.raises(ModelError):
        await ask(at(server.url, retries=0), ledger)
    assert [usage.completion for usage, _ in ledger.charges] == [200]


async def test_no_credit_in_a_stream_ends_the_run(at: Opening, ledger: Ledger) -> None:
    broke = event({"error": {"message": "none left", "code": 402}})
    with serve([Behaviour(pieces=[broke])]) as server, pytest.raises(CredentialError, match="no credit"):
        await ask(at(server.url), ledger)


async def test_an_endpoint_that_refuses_to_stream_is_asked_without_and_never_again(at: Opening, ledger: Ledger) -> None:
    def whole_only(request: Request) -> Behaviour:
        streams = "stream" in request.body
        return refusal(400, "stream_options: extra inputs are not permitted") if streams else reply("Fine.")

    elsewhere = [refusal(400, "the upstream provider refused"), refusal(400, "stream, yes, but"), refusal(400, "no")]
    with serve([*elsewhere, whole_only]) as server:
        models = at(server.url, retries=0)
        for why in ("upstream", "no"):
            with pytest.raises(ModelError, match=why):
                await models.get("m").ask(question(), Ledger())
        assert [await models.get("m").ask(question(), ledger) for _ in range(2)] == ["Fine.", "Fine."]
        await models.close()
    assert ["stream" in request.body for request in server.requests] == [True, True, False, True, False, False]
    assert ledger.charges == [(TokenUsage(prompt=100, completion=20), "")] * 2


async def test_a_stream_without_usage_costs_what_was_set_aside(at: Opening) -> None:
    ledger = Ledger(limit=0.05)
    with serve([chat_stream(["Fine."], usage=False)]) as server:
        assert await ask(at(server.url, PRICE), ledger) == "Fine."
    [(usage, failure)] = ledger.charges
    assert (usage.estimated, failure) == (True, "")
    assert usage.completion == server.requests[0].body["max_tokens"] > 1000
    assert 0.049 < ledger.dollars <= 0.05


MAY_PASS = [
    (refusal(429, "slow down"), "the endpoint answered 429: slow down", TokenUsage()),
    (refusal(429, "slow down", retry_after="0"), "the endpoint answered 429: slow down", TokenUsage()),
    (refusal(500, "oh\n \x1b[2J"), "the endpoint answered 500: oh ?[2J", TokenUsage()),
    (Behaviour(status=503, body="<html>busy</html>"), "the endpoint answered 503: <html>busy</html>", TokenUsage()),
    (Behaviour(status=500, body="ab" * 200_000, fault="stalled"), "the endpoint answered 500: abab", TokenUsage()),
    (
        Behaviour(status=503, body="busy", headers={"content-type": "text/plain; charset=rot13"}),
        "the endpoint answered 503: busy",
        TokenUsage(),
    ),
    (RESET, "the connection broke: Server disconnected without sending a response.", GUESS),
    (CUT, "the connection broke: peer closed connection", GUESS),
    (NOT_JSON, "the reply is not JSON: <html><body>Welcome", TokenUsage(prompt=6, completion=12, estimated=True)),
    (Behaviour(body="[" * 9999), "the reply is not JSON", TokenUsage(prompt=6, completion=2500, estimated=True)),
    (
        Behaviour(body='"text"'),
        "the reply is not a chat completion",
        TokenUsage(prompt=6, completion=2, estimated=True),
    ),
    (
        Behaviour(pieces=chat_stream(["half of th"]).pieces[:2], fault="cut"),
        "the connection broke",
        TokenUsage(prompt=6, completion=2, estimated=True),
    ),
    (
        Behaviour(pieces=['data: {"error": {"message": "overloaded"}}\n\n']),
        "the endpoint broke the reply off: overloaded",
        GUESS,
    ),
    (
        Behaviour(pieces=[chunk("Fi"), 'data: {"choices\n\n', chunk("ne", "stop")]),
        "the endpoint broke the reply off: an event",
        GUESS,
    ),
    (Behaviour(pieces=["<html>Welcome</html>"]), "the reply is not a stream of events: <html>Welcome", GUESS),
    (
        Behaviour(pieces=[chunk("Fi"), chunk("", "error", usage=counted(100, 20))]),
        "the endpoint failed in the middle",
        TokenUsage(prompt=100, completion=20),
    ),
    (chat_stream([]), "the reply has no text", TokenUsage(prompt=100, completion=20)),
    (EMPTY, "the reply has no choices", TokenUsage(prompt=9)),
    (reply(None), "the reply has no text", TokenUsage(prompt=100, completion=20)),
    (reply(" \n"), "the reply has no text", TokenUsage(prompt=100, completion=20)),
]


async def test_what_may_pass_is_tried_again(at: Opening) -> None:
    fine = reply("Fine.", prompt=1)
    with serve([each for behaviour, _, _ in MAY_PASS for each in (behaviour, fine)]) as server:
        models = at(server.url)
        for _, failure, usage in MAY_PASS:
            ledger = Ledger()
            assert await models.get("m").ask(question(), ledger) == "Fine."
            assert [charge[0] for charge in ledger.charges] == [usage, TokenUsage(prompt=1, completion=20)]
            assert ledger.failures[0].startswith(failure)
            assert ledger.failures[1] == ""
        await models.close()


async def test_an_endpoint_that_counts_nothing_is_not_believed(at: Opening) -> None:
    uncounted = [reply("Fine.", prompt=0, completion=0), reply("Fine.", prompt=0), reply("Fine.", completion=0)]
    with serve(uncounted) as server:
        models = at(server.url, PRICE)
        for behaviour in uncounted:
            ledger = Ledger()
            assert await models.get("m").ask(question(), ledger) == "Fine."
            guess = TokenUsage(prompt=6, completion=-(-len(behaviour.body) // 4), estimated=True)
            assert ledger.charges == [(guess, "")]
            assert ledger.dollars > 0
        await models.close()


@pytest.mark.parametrize("behaviour", [SILENT, STALLED])
async def test_an_endpoint_that_falls_silent_is_asked_again(at: Opening, ledger: Ledger, behaviour: Behaviour) -> None:
    with serve([behaviour, reply("Fine.")]) as server:
        assert await ask(at(server.url, 'first_byte = "300ms"'), ledger) == "Fine."
    assert ledger.charges[0] == (GUESS, "nothing came for 0.3 s")
    assert ledger.charges[-1] == (TokenUsage(prompt=100, completion=20), "")


async def test_what_would_come_again_is_not(at: Opening) -> None:
    same_again = {
        "the endpoint answered 400: the context is too long": refusal(400, "the context is too long"),
        "cut at the limit on its tokens; raise max_tokens": answer({"content": "half of"}, finish="length"),
        "the model refused: I will not": answer({"content": None, "refusal": "I will not"}),
        "content filter": answer({"content": "x"}, finish="content_filter"),
        "the reply has more than 1000000 bytes": HUGE,
    }
    with serve(list(same_again.values())) as server:
        models = at(server.url)
        for failure in same_again:
            ledger = Ledger()
            with pytest.raises(ModelError, match=failure):
                await models.get("m").ask(question(), ledger)
            assert len(ledger.charges) == 1
        await models.close()
    assert len(server.requests) == len(same_again)


async def test_a_limit_is_looked_at_before_every_attempt(at: Opening) -> None:
    ledger = Ledger(attempts=2)
    with serve([refusal(500)]) as server:
        with pytest.raises(SpendingLimitError):
            await ask(at(server.url), ledger)
        assert len(server.requests) == 2


async def test_a_whole_attempt_has_its_time_and_nobody_there_costs_nothing(at: Opening, ledger: Ledger) -> None:
    with serve([reply("late", latency=30)]) as server, pytest.raises(ModelError, match="within 0.1 s"):
        await ask(at(server.url, 'total = "100ms"', retries=0), ledger)
    with pytest.raises(ModelError, match="the connection broke"):
        await ask(at(server.url, retries=0), ledger)
    assert [usage for usage, _ in ledger.charges] == [GUESS, TokenUsage()]


NO_CREDIT = '{"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}}'

NEVER = [
    (BAD_KEY, CredentialError, "/v1 does not accept the key from the environment variable TEST_KEY (401: Incorrect"),
    (refusal(403, "no"), CredentialError, "does not accept the key"),
    (refusal(402, "pay"), CredentialError, "no credit"),
    (Behaviour(status=429, body=NO_CREDIT), CredentialError, "no credit"),
    (UNKNOWN_MODEL, UnknownModelError, "has no model 'm', or its address is wrong"),
]


async def test_what_can_never_succeed_ends_the_run(at: Opening) -> None:
    with serve([behaviour for behaviour, _, _ in NEVER]) as server:
        models = at(server.url)
        for _, error, message in NEVER:
            ledger = Ledger()
            with pytest.raises(error, match=re.escape(message)):
                await models.get("m").ask(question(), ledger)
            assert [usage for usage, _ in ledger.charges] == [TokenUsage()]
        await models.close()
    assert len(server.requests) == len(NEVER)


@pytest.mark.parametrize("status", [302, 307])
async def test_an_endpoint_that_sends_us_elsewhere_is_not_followed(at: Opening, ledger: Ledger, status: int) -> None:
    with serve() as other:
        elsewhere = Behaviour(status=status, headers={"location": f"{other.url}/chat/completions"})
        with serve([elsewhere, reply("Fine.")]) as server:
            assert await ask(at(server.url), ledger) == "Fine."
        assert other.requests == []
    assert ledger.failures[0].startswith(f"the endpoint answered {status}: it redirects to {other.url}")


async def test_the_key_is_in_no_reply_or_message_however_it_is_spelt(at: Opening, ledger: Ledger) -> None:
    spelt = "".join(f"\\u{ord(letter):04x}" for letter in KEY)
    fine, wrong = (each.body.replace("KEY", spelt) for each in (reply("KEY"), refusal(400, "x" * 190 + "KEY")))
    plain = [refusal(status, "x" * 190 + KEY) for status in (400, 401)]
    with serve([echo_of_the_key, Behaviour(body=fine), Behaviour(status=400, body=wrong), *plain]) as server:
        models = at(server.url)
        told = [await models.get("m").ask(question(), ledger) for _ in range(2)]
        assert told == ["Your key is [redacted]", "[redacted]"]
        for _ in range(3):
            with pytest.raises(EvoGitError, match=r"xx\[redact") as caught:
                await models.get("m").ask(question(), ledger)
            assert KEY[:8] not in str(caught.value) + str(ledger.failures)
        await models.close()


async def test_a_call_that_is_broken_off_is_charged_and_leaves_no_connection(at: Opening, ledger: Ledger) -> None:
    with serve([SILENT]) as server:
        asking = asyncio.create_task(ask(at(server.url), ledger))
        while not server.requests:
            await asyncio.sleep(0.01)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        while server.connections:
            await asyncio.sleep(0.01)
    assert ledger.charges == [(GUESS, "broken off")]


@pytest.mark.parametrize("limit", ["", "at_once = 1\n"])
async def test_a_stalled_call_stalls_no_other_unless_they_are_limited(at: Opening, ledger: Ledger, limit: str) -> None:
    with serve([SILENT, reply("Fine.")]) as server:
        models = at(server.url, f'[models.n]\nbase_url = "{server.url}"\nkey_env = "TEST_KEY"\n{limit}')
        one, other = models.get("m"), models.get("n")
        first = asyncio.create_task(one.ask(question(), ledger))
        while not server.requests:
            await asyncio.sleep(0.01)
        second = asyncio.create_task(other.ask(question(), Ledger()))
        if limit:
            await asyncio.sleep(0.05)
            assert len(server.requests) == 1
            first.cancel()
        assert await second == "Fine."
        first.cancel()
        await asyncio.wait([first])
        await models.close()


def test_retry_after_is_a_number_or_a_date() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert retry_after("7.5") == 7.5
    assert retry_after("Thu, 01 Jan 2026 00:00:09 GMT", now) == 9
    assert retry_after("Wed, 31 Dec 2025 00:00:00 GMT", now) == 0
    assert retry_after("99999") == LONGEST_WAIT
    assert retry_after(f"Thu, 01 Jan {10**20} 00:00:09 GMT") is None
    assert retry_after(None) is retry_after("soon") is retry_after("-1") is None


def test_pauses_grow_differ_and_are_never_shorter_than_asked_for(at: Opening) -> None:
    model: Any = at("http://127.0.0.1:9/v1", "").get("m")
    model.rng = random.Random(1)
    pauses = [model._pause(attempt, None, 60.0) for attempt in range(30)]
    assert all(0.0005 * 2**n <= pause <= 0.001 * 2**n for n, pause in enumerate(pauses[:10]))
    assert max(pauses) <= 60
    assert model._pause(0, 3.0, 60.0) >= 3.0


def test_a_question_under_way_while_the_machine_slept_is_asked_again(at: Opening, ledger: Ledger, monkeypatch) -> None:
    monkeypatch.setattr("evogit.llm.endpoint.ASLEEP", 0.1)
    monkeypatch.setattr("evogit.engine.halts.ASLEEP", 0.5)
    monkeypatch.setattr("evogit.engine.halts.BEAT_EVERY", 0.01)

    async def sleep_and_ask() -> str:
        asyncio.get_running_loop().call_later(0.05, stop_this_process, 1.0)
        return await ask(at(server.url, 'total = "200ms"'), ledger)

    with serve([SILENT, reply("Fine.")]) as server, asyncio.Runner(loop_factory=AwakeLoop) as runner:
        assert runner.run(sleep_and_ask()) == "Fine."
    assert len(server.requests) == 2
    assert "the machine slept" in ledger.failures[0]
