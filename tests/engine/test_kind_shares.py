"""Which kind of paid agents a run's money goes to; agents here are as good and as dear as a test says."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evogit import Repository, Run, Settings, Task
from evogit.agents import Brief, NoUsableChangeError, Proposal
from evogit.config.run_settings import AgentSpec
from evogit.engine import waiting
from evogit.events import Proposed, Spent
from evogit.llm import TokenUsage
from evogit.testing import Asked, InMemoryBackend, ScriptedAgent
from tests.clock import PATIENCE

SHARED = (AgentSpec("editor", "m", 2), AgentSpec("coder", "m", 2))


def paid(tokens: int, gain: int, before: Callable[[int], Awaitable[None]] | None = None) -> ScriptedAgent:
    """Takes so many tokens for a change that adds to the value, once it is time for the move of that number."""
    done = 0

    async def think(brief: Brief, rng: random.Random) -> Proposal:
        nonlocal done
        assert brief.account
        done += 1
        if before:
            await before(done)
        brief.account.check()
        brief.account.charge(SimpleNamespace(name="m", price=None, context=0), TokenUsage(prompt=tokens, completion=0))
        value = int(brief.files["program.py"].decode().rpartition(" ")[2]) + gain
        text = f"# {rng.random()}\nA = {value}\n"
        return Proposal(changes={"program.py": text.encode()}, title="a step")

    return ScriptedAgent(think)


async def moves(
    folder: Path,
    task: Task,
    agents: list[ScriptedAgent],
    told: Callable[[str, str], None] = lambda agent, doing: None,
    counted: type[Spent | Proposed] = Spent,
    **limits: Any,
) -> Counter[str]:
    """How often each agent asked its model, or what else is counted; `told` hears what agents do."""
    found: Counter[str] = Counter()

    def value(asked: Asked) -> float:
        return float(asked.changed.get("program.py", b"A = 0").decode().rpartition(" ")[2])

    class Watch:
        def entry(self, entry: Any) -> None:
            if isinstance(entry.event, counted):
                found[entry.event.agent] += 1

        def activity(self, agent: str, doing: str) -> None:
            told(agent, doing)

    settings = Settings(**{"population": SHARED, "deterministic": True, **limits})
    backend = InMemoryBackend(task, value)
    await Run(Repository.create(folder), task, "r", settings, Watch(), agents=agents, backend=backend).evolve()
    return found


@pytest.fixture
def plain(tiny: Callable[..., Task]) -> Task:
    return tiny(program="A = 0\n")


@pytest.mark.slow
async def test_what_is_left_goes_to_the_kind_that_gains_most_for_it(path: Path, plain: Task) -> None:
    agents = [*(paid(1_000, 1) for _ in range(2)), *(paid(10_000, 1) for _ in range(2))]
    asked = await moves(path, plain, agents, tokens=100_000)
    assert asked["a1"] + asked["a2"] > 5 * (asked["a3"] + asked["a4"])
    assert asked["a3"], "nobody is judged unseen"


async def test_kinds_that_earn_the_same_work_side_by_side(path: Path, plain: Task) -> None:
    asked = await moves(path, plain, [paid(1_000, 1) for _ in range(4)], proposals=40)
    assert max(asked.values()) <= 2 * min(asked.values())


async def test_nobody_waits_where_calls_use_up_no_limit(path: Path, plain: Task) -> None:
    agents = [*(paid(1_000, 1) for _ in range(2)), *(paid(10_000, 0) for _ in range(2))]
    asked = await moves(path, plain, agents, evaluations=40)
    assert max(asked.values()) <= 2 * min(asked.values())


async def test_no_room_is_kept_for_who_waits(path: Path, plain: Task) -> None:
    """Two dear agents and a cheap one; a dear one is refused the last room, and then its kind has to wait."""
    heard = {name: asyncio.Event() for name in ("begun", "refused", "outdone", "next")}

    def told(agent: str, doing: str) -> None:
        if agent == "a3" and doing == "thinking":
            heard["begun"].set()
        elif agent == "a2" and doing == "waiting":
            heard["refused"].set()
        elif agent == "a2" and doing.startswith("waiting, as others gain"):
            heard["outdone"].set()
        elif agent == "a1" and doing == "waiting":
            heard["next"].set()

    async def cheap(move: int) -> None:
        await asyncio.wait_for(heard["refused"].wait(), PATIENCE)

    async def nothing(move: int) -> None:
        for each in ("outdone", "next"):
            await asyncio.wait_for(heard[each].wait(), PATIENCE)
        raise NoUsableChangeError("nothing came to mind")

    async def dear(move: int) -> None:
        await asyncio.wait_for(heard["begun"].wait(), PATIENCE)

    agents = [paid(1_000, 9, cheap), paid(10_000, 1, dear), paid(10_000, 1, nothing)]
    limits = {"population": (AgentSpec("editor", "m"), AgentSpec("coder", "m", 2)), "evaluations": 4, "proposals": 40}
    running = moves(path, plain, agents, told, Proposed, deterministic=False, **limits)
    made = await asyncio.wait_for(running, PATIENCE)
    assert (made["a1"], made["a2"], made["a3"]) == (2, 1, 0), "the last evaluation is the cheap one's"


@pytest.mark.slow
async def test_who_waits_goes_on_when_the_others_bring_nothing_for_long(
    path: Path, plain: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "PATIENCE_S", 0.05)
    down, mended = 8, asyncio.Event()

    async def endpoint(move: int) -> None:
        if move > down:
            await asyncio.wait_for(mended.wait(), PATIENCE)

    async def other(move: int) -> None:
        if move > 5:
            mended.set()

    agents = [*(paid(1_000, 1, endpoint) for _ in range(2)), *(paid(10_000, 1, other) for _ in range(2))]
    asked = await moves(path, plain, agents, proposals=40, deterministic=False)
    assert mended.is_set()
    assert max(asked["a3"], asked["a4"]) > 5
