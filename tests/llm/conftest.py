from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest
from msgspec.structs import replace

from evogit.config.user_settings import UserSettings, load_user_settings
from evogit.core import picodollars
from evogit.llm import Message, Model, Question, Reservation, SpendingLimitError, TokenUsage
from evogit.llm.bounds import LEAST_REPLY
from evogit.llm.endpoint import Patience
from evogit.llm.gateway.gateway import Gateway, GatewaySession
from evogit.llm.registry import OpenModels, open_models

KEY = "sk-test-0123456789"

DUMMY = "sk-what-the-program-has"
ASKED: dict[str, dict[str, Any]] = {
    "chat/completions": {"model": "m", "messages": [{"role": "user", "content": "How are you?"}]},
    "responses": {"model": "m", "input": "How are you?"},
    "messages": {"model": "m", "max_tokens": 50, "messages": [{"role": "user", "content": "How are you?"}]},
}
"""What a program sends: path -> body."""

Opening = Callable[..., OpenModels]
Settings = Callable[[str], UserSettings]


@dataclass
class Ledger:
    """An account that allows `attempts`."""

    attempts: int = 1000
    limit: float | None = None
    charges: list[tuple[TokenUsage, str]] = field(default_factory=list)
    dollars: float = 0.0
    waits: list[float] = field(default_factory=list)

    def check(self) -> None:
        if len(self.charges) >= self.attempts or (self.limit is not None and self.dollars >= self.limit):
            raise SpendingLimitError("the limit on dollars is reached")

    async def reserve(self, model: Model, worst: TokenUsage) -> Reservation:
        self.check()
        if self.limit is None or model.price is None:
            return Reservation()
        reply = model.price.reply_for(picodollars(self.limit - self.dollars), worst)
        if reply < min(worst.completion, LEAST_REPLY):
            raise SpendingLimitError("what is left does not pay for a question", "dollars")
        return Reservation("", replace(worst, completion=reply))

    async def wait_out(self, model: Model, why: str, seconds: float) -> bool:
        self.waits.append(seconds)
        await asyncio.sleep(seconds)
        return False

    async def pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def exhaust(self, limit: object) -> None:
        """Nothing is limited here but attempts."""

    def charge(
        self, model: Model, usage: TokenUsage, failure: str = "", reservation: Reservation | None = None
    ) -> None:
        self.charges.append((usage, failure))
        self.dollars += model.price.of(usage) if model.price else 0.0

    @property
    def failures(self) -> list[str]:
        return [failure for _, failure in self.charges]


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Reads settings from a text."""

    def read(text: str) -> UserSettings:
        file = tmp_path / "settings.toml"
        file.write_text(text)
        return load_user_settings({"EVOGIT_SETTINGS": str(file)})

    return read


@pytest.fixture
def at(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Opening:
    """Opens models where `m` is behind an endpoint, with little patience and a key."""

    def opening(url: str, more: str = "", retries: int = Patience.retries, **options: Path) -> OpenModels:
        monkeypatch.setenv("TEST_KEY", KEY)
        monkeypatch.setattr(Patience, "pause", 0.001)
        monkeypatch.setattr(Patience, "retries", retries)
        table = f'[models.m]\nbase_url = "{url}"\nkey_env = "TEST_KEY"\n'
        return open_models(settings(table + more), **options)

    return opening


@dataclass
class Program:
    """What runs in a container: it knows a socket and nothing else."""

    session: GatewaySession
    http: httpx2.AsyncClient
    place: Path

    async def ask(self, path: str = "chat/completions", **more: Any) -> httpx2.Response:
        return await self.http.post(f"/v1/{path}", json=ASKED[path] | more)

    async def stream(self, path: str = "chat/completions", **more: Any) -> str:
        return (await self.ask(path, stream=True, **more)).text


@pytest.fixture
def programs(at: Opening, ledger: Ledger, tmp_path: Path) -> Callable[..., Any]:
    """A gateway to an endpoint, whose processes all of its programs share, and what starts one that may ask `m`."""

    @asynccontextmanager
    async def open_(url: str, more: str = "", calls: int = 16) -> AsyncIterator[Callable[..., Any]]:
        models = at(url, more)
        gateway = Gateway(models, calls=calls)

        @asynccontextmanager
        async def start(account: Any = None) -> AsyncIterator[Program]:
            session = gateway.session(account or ledger, ["m"])
            keys = {"authorization": f"Bearer {DUMMY}", "x-api-key": DUMMY}
            async with session.listen(tmp_path / "s") as place:
                transport = httpx2.AsyncHTTPTransport(uds=str(place), verify=False)
                async with httpx2.AsyncClient(
                    transport=transport, base_url="http://gateway", headers=keys, timeout=60
                ) as http:
                    yield Program(session, http, place)

        try:
            yield start
        finally:
            await gateway.close()
            await models.close()

    return open_


@pytest.fixture
def program(programs: Callable[..., Any]) -> Callable[..., Any]:
    """Starts a program that may ask `m` through a gateway to an endpoint; ledger and settings are those of `at`."""

    @asynccontextmanager
    async def start(url: str, more: str = "", account: Any = None, calls: int = 16) -> AsyncIterator[Program]:
        async with programs(url, more, calls) as start_one, start_one(account) as program:
            yield program

    return start


def question(text: str = "How are you?", move: int = 1, attempt: int = 0) -> Question:
    return Question(messages=(Message("system", "Be brief."), Message("user", text)), move=move, attempt=attempt)
