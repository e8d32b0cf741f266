"""A session's own limit on tokens is kept as the run's are: what a question has at most is held before it is sent."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from typing import Any

import pytest

from evogit.agents.model_agent import SessionAllowance
from evogit.llm import Model, Question, Reservation, SpendingLimitError, TokenUsage
from evogit.llm.script import ScriptedModel


@dataclass
class Unlimited:
    """The account of a run without limits."""

    counted: int = 0

    def check(self) -> None: ...

    async def reserve(self, model: Model, worst: TokenUsage) -> Reservation:
        await asyncio.sleep(0)
        return Reservation()

    def exhaust(self, limit: object) -> None: ...

    async def wait_out(self, model: Model, why: str, seconds: float) -> bool:
        return False

    async def pause(self, seconds: float) -> None: ...

    def charge(self, model: Model, usage: TokenUsage, *_: object) -> None:
        self.counted += usage.prompt + usage.completion


@pytest.fixture
def model(tmp_path: Any) -> ScriptedModel:
    (tmp_path / "script").write_text("hello")
    return ScriptedModel(tmp_path / "script")


async def test_questions_at_once_never_take_more_than_the_session_may(model: ScriptedModel) -> None:
    rng, run = random.Random(2), Unlimited()
    session = SessionAllowance(run, 100_000)
    seen = []

    async def ask() -> None:
        while True:
            worst = TokenUsage(prompt=rng.randrange(5000), completion=rng.randrange(1, 20_000))
            try:
                held = await session.reserve(model, worst)
            except SpendingLimitError:
                return
            assert held.ceiling is not None
            seen.append(session.used + session.held)
            await asyncio.sleep(rng.random() / 1000)
            told = TokenUsage(prompt=rng.randrange(worst.prompt + 1), completion=rng.randrange(held.ceiling + 1))
            session.charge(model, rng.choice([told, TokenUsage(prompt=1, estimated=True)]), "", held)

    await asyncio.gather(*(ask() for _ in range(8)))
    assert max(seen) <= 100_000
    assert (session.held, session.used > 80_000) == (0, True)
    assert run.counted <= session.used, "what nobody told counts as what was held, for the session alone"


async def test_what_is_held_is_given_back_when_the_run_has_no_room(model: ScriptedModel) -> None:
    class Empty(Unlimited):
        async def reserve(self, model: Model, worst: TokenUsage) -> Reservation:
            raise SpendingLimitError("the limit on dollars is reached")

    session = SessionAllowance(Empty(), 10_000)
    with pytest.raises(SpendingLimitError, match="dollars"):
        await session.reserve(model, TokenUsage(prompt=10, completion=2000))
    with pytest.raises(SpendingLimitError, match="the session's 10,000 tokens"):
        await session.reserve(model, TokenUsage(prompt=9500, completion=2000))
    assert session.held == 0


async def test_no_agent_sees_the_thoughts_of_a_model(tmp_path: Any) -> None:
    (tmp_path / "script").write_text("A draft.\n</think>\nThe answer.\n")
    question = Question(messages=(), move=1)
    assert await ScriptedModel(tmp_path / "script").ask(question, Unlimited()) == "The answer.\n"
