"""Runs by a scripted model beside mutators: where its calls go once nothing gets better."""

from __future__ import annotations

import asyncio
from pathlib import Path

from evogit.agents.editor import Editor
from evogit.agents.mutation.mutator import Mutator
from evogit.config import Task
from evogit.config.run_settings import AgentSpec
from evogit.llm import Account, Price, Question, TokenUsage
from evogit.repository import Repository
from evogit.run import Run, Settings
from evogit.testing import Asked, InMemoryBackend

FIRST, ADVICE = "LEAP", "Sort first, then search."
REPLY = "TITLE: {title}\n\n<<<<<<< WRITE program.py\n{title} = {number}\n>>>>>>> END\n"


class Strong:
    """A model whose first reply gains most of what there is to gain, and all others nothing."""

    name = "strong"
    price = Price(prompt=0, cached=0, completion=0)
    context = 100_000

    def __init__(self) -> None:
        self.briefs: list[str] = []

    async def ask(self, question: Question, account: Account) -> str:
        account.check()
        usage = TokenUsage(prompt=100, completion=10)
        reservation = await account.reserve(self, usage)
        await asyncio.sleep(0.005)
        account.charge(self, usage, "", reservation)
        text = question.messages[-1].content
        self.briefs.append(text)
        if "Look back" in text:
            return ADVICE
        return REPLY.format(title=FIRST if len(self.briefs) == 1 else "STEP", number=len(self.briefs))


def score(asked: Asked) -> float:
    text = asked.changed.get("program.py", b"").decode()
    return 1.0 if FIRST in text else 0.7 if "STEP" in text else 0.1


def test_look_backs_and_fresh_starts_are_a_share_of_the_calls_whatever_mutators_do(task: Task, path: Path) -> None:
    model = Strong()
    crew = (AgentSpec("editor", "strong"), AgentSpec("mutator", count=2))
    settings = Settings(population=crew, calls=60, evaluations=20_000)
    agents = [Editor(model), Mutator(), Mutator()]
    backend = InMemoryBackend(task, score, pause=0.01)
    run = Run(Repository.create(path), task, "r", settings, agents=agents, backend=backend)
    stopped = asyncio.run(run.evolve())
    assert (stopped.reason, len(model.briefs), run.history.spent.calls) == ("calls", 60, 60)
    asked = [number for number, text in enumerate(model.briefs) if "Look back" in text]
    assert 3 <= len(asked) <= 6
    assert asked[0] == 5, "after four calls without a gain"
    for number in asked:
        heard = [ADVICE in text for text in model.briefs[number + 1 :]]
        assert heard[:2] == [True, True]
    assert sum(ADVICE in text for text in model.briefs) == 2 * len(asked)
    later = model.briefs[asked[0] + 3 :]
    fresh = [text for text in later if f"{FIRST} = " not in text]
    assert fresh, "some begin at the goal and the seed alone"
    assert len(fresh) < len(later) / 2
