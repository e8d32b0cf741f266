"""When agents that ask a model begin, while evaluations are what takes time."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from evogit import Repository, Run, Settings, Task
from evogit.agents import Brief, Proposal
from evogit.config.run_settings import AgentSpec
from evogit.testing import Asked, InMemoryBackend, ScriptedAgent, score_of_tree

AGENTS = 6
MODEL, FREE = AgentSpec("editor", "m", AGENTS), AgentSpec("mutator", count=AGENTS)


def changed(brief: Brief, rng: random.Random) -> Proposal:
    return Proposal(changes={"program.py": f"A = {rng.random()}\n".encode()}, title="another number")


@pytest.mark.parametrize("who", [MODEL, FREE])
async def test_a_model_is_asked_only_for_what_would_be_evaluated_soon(
    path: Path, tiny: Callable[..., Task], who: AgentSpec
) -> None:
    task, evaluated, unknown = tiny(program="A = 0\n"), 0, []

    async def judge(asked: Asked) -> float:
        nonlocal evaluated
        deadline = time.monotonic() + 0.3  # at the end there is no next one
        while evaluated and len(backend.asked) == evaluated + 1 and time.monotonic() < deadline:
            await asyncio.sleep(0.001)
        evaluated += 1
        return score_of_tree(asked)

    def think(brief: Brief, rng: random.Random) -> Proposal:
        unknown.append(len(backend.asked) - evaluated)
        return changed(brief, rng)

    backend = InMemoryBackend(task, judge, jobs=1)
    settings = Settings(population=(who,), evaluations=30, selector="elitist:numbers=no")
    agents = [ScriptedAgent(think) for _ in range(AGENTS)]
    evolving = Run(Repository.create(path), task, "r", settings, agents=agents, backend=backend)
    assert (await evolving.evolve()).reason == "evaluations"
    most = max(unknown[AGENTS:])  # the first ones begin at once, as all is free then
    assert (most <= 3) == who.asks


async def test_all_ask_at_once_where_calls_are_what_takes_time(path: Path, tiny: Callable[..., Task]) -> None:
    task, thinking, at_once = tiny(program="A = 0\n"), 0, []

    async def think(brief: Brief, rng: random.Random) -> Proposal:
        nonlocal thinking
        thinking += 1
        at_once.append(thinking)
        await asyncio.sleep(0.2)
        thinking -= 1
        return changed(brief, rng)

    settings = Settings(population=(MODEL,), evaluations=60)
    agents = [ScriptedAgent(think) for _ in range(AGENTS)]
    backend = InMemoryBackend(task, jobs=2)
    evolving = Run(Repository.create(path), task, "r", settings, agents=agents, backend=backend)
    assert (await evolving.evolve()).reason == "evaluations"
    assert max(at_once[-20:]) >= AGENTS - 1, "three would be two free places and one more"
