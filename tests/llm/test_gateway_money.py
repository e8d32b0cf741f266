"""A hundred hostile sessions against an endpoint that lies, cuts and falls silent: no limit is ever exceeded.

The endpoint keeps a ledger of its own: what it bills for each question that reached it, whole replies also where nobody
waited for them. What the account says is never less, and the same wherever the endpoint told it and was heard.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from evogit.agents.model_agent import SessionAllowance
from evogit.config import Task
from evogit.core import picodollars
from evogit.engine.account import RunAccount
from evogit.history.context import StoredRun
from evogit.llm import Price, TokenUsage
from evogit.llm.gateway.gateway import Gateway
from evogit.llm.registry import open_models
from evogit.repository import Repository
from tests.clock import PATIENCE
from tests.openai_server import Behaviour, Request, serve
from tests.protocol_replies import chat, chat_stream, message, message_stream, response, response_stream

from .conftest import ASKED, Settings

PRICE = Price(prompt=1, cached=0.1, completion=10)
SETTINGS = "price = { input = 1, cached = 0.1, output = 10 }\nfirst_byte = '1s'\n"
RUNS, SESSIONS = 10, 10

CEILINGS = {"chat/completions": "max_tokens", "responses": "max_output_tokens", "messages": "max_tokens"}
REPLIES: Mapping[str, tuple[Callable[..., Behaviour], Callable[..., Behaviour]]] = {
    "chat/completions": (chat, chat_stream),
    "responses": (response, response_stream),
    "messages": (message, message_stream),
}
DEAR = {"n", "best_of", "store", "previous_response_id", "service_tier", "background", "prediction"}
DEAR.add("web_search_options")
FAULTS = ("lie", "untold", "cut", "silent", "stalled", "reset", "proxy", "busy", "page")
TRICKS = ("leave", "pipeline", "half", "count", "half close")
LIES: tuple[dict[str, Any], ...] = (
    {"prompt": 0, "completion": 0},
    {"prompt": -5, "completion": -100},
    {"prompt": 10**8, "completion": 10**8},
    {"prompt": "12", "completion": "lots"},
    {"prompt": True, "completion": 0.5},
    {"prompt": 10**30, "completion": 1},
)


@dataclass
class Till:
    """Answers as it likes, and knows what it bills."""

    rng: random.Random
    honest: bool = False
    billed: list[float] = field(default_factory=list)
    # what it says of them, true or not: the account has no other number that it believes
    told: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def answer(self, request: Request) -> Behaviour:
        path = request.path.removeprefix("/v1/")
        body, rng = request.body, self.rng
        ceiling = body.get(CEILINGS[path])
        named = [name for name in ("max_tokens", "max_completion_tokens", "max_output_tokens") if name in body]
        if type(ceiling) is not int or named != [CEILINGS[path]] or DEAR & body.keys():
            self.wrong.append(request.text[:300])
            return Behaviour(fault="reset")
        prompt = rng.randrange(len(request.text) // 8, len(request.text) + 1)
        completion = rng.choice((1, ceiling, rng.randrange(1, ceiling + 1)))
        cached = rng.choice((0, prompt // 2))
        kind = "honest" if self.honest else rng.choice((*("honest",) * 6, *FAULTS))
        if kind == "busy":
            return Behaviour(status=rng.choice((429, 500, 503)), body='{"error": {"message": "no"}}')
        bill = PRICE.of(TokenUsage(prompt=prompt, cached=cached, completion=completion))
        self.billed.append(bill)
        asked = prompt - cached if path == "messages" else prompt
        counted = {"prompt": asked, "cached": cached, "completion": completion}
        if kind == "honest":
            self.told.append(bill)
        return self._said(kind, path, bool(body.get("stream")), counted)

    def _said(self, kind: str, path: str, streams: bool, counted: dict[str, int]) -> Behaviour:
        rng, reply = self.rng, REPLIES[path][streams]
        match kind:
            case "honest":
                return replace(reply(**counted), latency=rng.choice((0, 0, 0.02)))
            case "lie":
                self.told.append(PRICE.of(TokenUsage(prompt=10**8, completion=10**8)))
                return reply(**rng.choice(LIES))
            case "cut" | "stalled" if streams:
                text = "".join(reply(**counted).pieces)
                return Behaviour(pieces=[text[: rng.randrange(1, len(text) - 20)]], fault=kind)
            case "untold":
                whole = json.dumps({"choices": [{"message": {"content": "x"}}]})
                return reply(usage=False) if streams else Behaviour(body=whole)
            case "proxy":
                return Behaviour(status=rng.choice((502, 504, 524)), body="<html>timeout")
            case "page":
                return Behaviour(body="<html>", headers={"content-encoding": "gzip"} if rng.random() < 0.5 else {})
            case _:
                return Behaviour(body="half of it", fault=kind if kind in ("cut", "silent", "stalled") else "reset")  # type: ignore[arg-type]


@dataclass
class Hostile:
    """What a program does with its socket; a `tame` one asks and waits."""

    place: Path
    rng: random.Random
    tame: bool = False

    async def live(self) -> None:
        await asyncio.gather(*(self._connection() for _ in range(self.rng.randrange(2, 7))))

    async def _connection(self) -> None:
        for _ in range(self.rng.randrange(2, 6)):
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                reader, writer = await asyncio.open_unix_connection(self.place)
                try:
                    await self._ask(reader, writer)
                finally:
                    writer.transport.abort()

    async def _ask(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        rng = self.rng
        kind = (
            "wait" if self.tame else rng.choice((*("wait",) * 12, "leave", "pipeline", "half", "count", "half close"))
        )
        sent = self._request()
        if kind == "half":
            writer.write(sent[: rng.randrange(len(sent))])
            await writer.drain()
            return
        writer.write(sent * (3 if kind == "pipeline" else 1) if kind != "count" else self._counting() * 5)
        await writer.drain()
        if kind == "half close":
            writer.write_eof()
        if kind == "leave":
            await asyncio.sleep(rng.choice((0, 0.005, 0.02)))
            return
        async with asyncio.timeout(PATIENCE):
            for _ in range({"pipeline": 3, "count": 5}.get(kind, 1)):
                head = await reader.readuntil(b"\r\n\r\n")
                if length := [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")]:
                    await reader.readexactly(int(length[0].partition(b":")[2]))
                else:
                    await reader.readuntil(b"0\r\n\r\n")

    def _request(self) -> bytes:
        rng = self.rng
        path = rng.choice(list(ASKED))
        more: dict[str, Any] = rng.choice(
            (
                {},
                {},
                {"stream": True},
                {"stream": True, "stream_options": {"continuous_usage_stats": True}},
                {"n": 9, "best_of": 9, "service_tier": "priority"},
                {"reasoning_effort": "xhigh", "reasoning": {"max_tokens": 10**6}},
                {"thinking": {"type": "enabled", "budget_tokens": 10**6}},
                {"previous_response_id": "resp_1", "store": True},
                {"model": rng.choice(("unknown", None, 7, ["m"]))},
            )
        )
        ceiling = rng.choice((None, 1, 500, 10**6, 10**12, 0, -1, True, "9", 1.5, None))
        named = rng.choice(("max_tokens", "max_completion_tokens", "max_output_tokens"))
        text = rng.choice("xé\u6f22\ufdfa") * rng.choice((1, 100, 2000))
        where = "input" if path == "responses" else "messages"
        body = ASKED[path] | {where: [{"role": "user", "content": text}]} | more
        body |= {} if ceiling is None else {named: ceiling}
        return _post(path, json.dumps(body, ensure_ascii=rng.random() < 0.5).encode(), chunked=rng.random() < 0.2)

    def _counting(self) -> bytes:
        return _post("messages/count_tokens", json.dumps({"messages": [[]] * self.rng.randrange(2000)}).encode())


def _post(path: str, body: bytes, *, chunked: bool = False) -> bytes:
    head = f"POST /v1/{path} HTTP/1.1\r\nHost: x\r\n"
    if not chunked:
        return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
    parts = [body[at : at + 700] for at in range(0, len(body), 700)]
    sent = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)
    return f"{head}Transfer-Encoding: chunked\r\n\r\n".encode() + sent + b"0\r\n\r\n"


class Books:
    """The account of one run with limits; they are looked at whenever the journal grows."""

    def __init__(self, path: Path, task: Task, stack: ExitStack, **limits: Any) -> None:
        repository = Repository.create(path)
        name = stack.enter_context(repository.engines("r").enter(join=False))
        self.run = StoredRun.open(repository, "r")
        self.account = RunAccount(self.run.about(task).of(name), **limits)
        self.charges: list[float] = []
        self.most = 0.0
        self.run.journal.subscribe(self._look)

    def _look(self, entry: Any) -> None:
        committed = self.run.history.committed()
        self.most = max(self.most, committed.dollars / (self.account.dollars or 1))
        if self.account.tokens:
            self.most = max(self.most, committed.tokens / self.account.tokens)
        if entry.event.event == "spent":
            self.charges += [] if entry.event.estimated or not entry.event.dollars else [entry.event.dollars]


@pytest.mark.slow
async def test_no_limit_is_exceeded_and_the_account_is_the_endpoints_own(
    settings: Settings, tmp_path: Path, tiny: Callable[..., Task]
) -> None:
    """Ten runs of ten sessions, each run with limits of its own; the last one is of honest people."""
    rng, task = random.Random(1), tiny()
    tills = [Till(random.Random(rng.random()), honest=n == RUNS - 1) for n in range(RUNS)]
    with ExitStack() as stack:
        servers = [stack.enter_context(serve([till.answer])) for till in tills]
        dollars, tokens = (0.05, 2.0, 10.0, 100.0), (None, 1_000_000, 30_000_000)
        limits = [{"dollars": rng.choice(dollars), "tokens": rng.choice(tokens)} for _ in tills[1:]] + [
            {"dollars": 500.0}
        ]
        books = [Books(tmp_path / str(n), task, stack, **each) for n, each in enumerate(limits)]
        tables = [f'[models.m{n}]\nid = "m"\nbase_url = "{each.url}"\n{SETTINGS}' for n, each in enumerate(servers)]
        gateway = Gateway(models := open_models(settings("".join(tables))), calls=64)

        async def session(run: int, n: int, seed: float) -> None:
            account = SessionAllowance(books[run].account.of_move(f"a{n}", n + 1), 20_000_000)
            async with gateway.session(account, [f"m{run}"]).listen(tmp_path / f"s{run}-{n}") as place:
                await Hostile(place, random.Random(seed), tame=tills[run].honest).live()

        await asyncio.gather(*(session(run, n, rng.random()) for run in range(RUNS) for n in range(SESSIONS)))
        await gateway.close()
        await models.close()
    for till, book in zip(tills, books, strict=True):
        spent = book.run.history.spent
        assert till.wrong == []
        assert book.run.history.reserved == {}
        assert book.most <= 1
        assert spent.picodollars >= sum(map(picodollars, till.billed)), "what was billed is in the account"
        assert not Counter(book.charges) - Counter(till.told), "and nothing else, but what was set aside"
    assert sum(len(till.billed) for till in tills) > 100
    assert books[-1].run.history.spent.picodollars == sum(map(picodollars, tills[-1].billed)) > 0
