"""A run in a real repository, written as an engine would, and a model that says what it was told to say."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from evogit.agents import Agent, Brief
from evogit.breeding.breeder import Bred, Breeder
from evogit.config import Task
from evogit.core import Evaluation, Metric
from evogit.events import Decision, Evaluated, FailedProposal
from evogit.llm import Account, Model, Price, Question, Reservation, TokenUsage
from evogit.repository import EXECUTABLE
from evogit.selection import Move
from evogit.testing import RecordedRun

SEED = {
    "main.py": b"VALUE = 1\n",
    "run.sh": b"#!/bin/sh\necho 1\n",
    "AGENTS.md": b"Use tabs.\n",
    "judge/secret.py": b"ANSWER = 42\n",
    "README.md": b"# Readme\n",
}


class Parrot:
    """A model whose replies are given; an exception among them is raised. Remembers what it was asked."""

    name = "parrot"
    price: Price | None = None
    context = 100_000

    def __init__(self, *replies: str | Exception) -> None:
        self._replies = list(replies)
        self.asked: list[Question] = []

    async def ask(self, question: Question, account: Account) -> str:
        account.check()
        self.asked.append(question)
        reply = self._replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        account.charge(self, TokenUsage(prompt=1, completion=1))
        return reply


class Wallet:
    """An account that pays for everything and remembers for how many attempts."""

    def __init__(self) -> None:
        self.paid = 0

    def check(self) -> None:
        """There is always something left."""

    async def wait_out(self, model: Model, why: str, seconds: float) -> bool:
        return False

    async def pause(self, seconds: float) -> None:
        """No reply is ever lost."""

    async def reserve(self, model: object, worst: TokenUsage) -> Reservation:
        """There is always something left."""
        return Reservation()

    def charge(
        self, model: object, usage: TokenUsage, failure: str = "", reservation: Reservation | None = None
    ) -> None:
        self.paid += 1


class Lab(RecordedRun):
    """One run; `add` makes candidates, `breed` has an agent make one."""

    def __init__(self, folder: Path, task: Task) -> None:
        known = {"task": task.name, "metrics": task.metrics, "editable": task.editable}
        super().__init__(folder, agents=("a1", "a2"), **known)
        self.task = task
        self.breeder = Breeder(self.repository, task, self.history)
        self.wallet = Wallet()
        self.moves = 0

    def add(
        self,
        files: Mapping[str, bytes | None],
        *parents: str,
        title: str = "step",
        evaluation: Evaluation | float | None = None,
        evidence: Mapping[str, bytes] | None = None,
        modes: Mapping[str, int] | None = None,
    ) -> str:
        """A candidate; a number stands for an evaluation with this score."""
        commit = self.commit(files, *parents, title=title, modes=modes)
        self.await_evaluation(commit, self.repository.tree_of(commit), *parents, title=title)
        if isinstance(evaluation, float):
            evaluation = Evaluation(status="ok", metrics={"score": evaluation})
        if evaluation:
            kept = self.journal.keep(evidence or {}, commit)
            self.append(Evaluated(candidate=commit, evaluation=evaluation, evidence=kept))
        return commit

    def await_evaluation(self, commit: str, tree: str, *parents: str, title: str = "step") -> None:
        """Journal a commit as a candidate that awaits its evaluation."""
        self.propose(*parents, candidate=commit, tree=tree, title=title, agent="a1", move=self.moves)
        self.moves += 1

    def idea(self, evaluation: Evaluation | float, parent: str, *, title: str, **known: str) -> str:
        """A candidate by a model, unlike any other, with the family and the rest that its author gave."""
        self.moves += 1
        told = {"title": title, "move": self.moves, **known}
        commit = self.add_files({"main.py": b"VALUE = 'idea %d'\n" % self.moves}, parent, **told)
        found = Evaluation(status="ok", metrics={"score": evaluation}) if isinstance(evaluation, float) else evaluation
        self.append(Evaluated(candidate=commit, evaluation=found))
        return commit

    def seed(self, evaluation: Evaluation | float | None = 1.0, evidence: dict[str, bytes] | None = None) -> str:
        """The first candidate."""
        modes = {"run.sh": EXECUTABLE}
        return self.add(SEED, title="seed", evaluation=evaluation, evidence=evidence, modes=modes)

    def fail(self, parent: str, reason: str) -> None:
        """A proposal that was not usable."""
        self.moves += 1
        self.journal.append(FailedProposal(engine="e", move=self.moves, agent="a2", parents=(parent,), reason=reason))

    def guide(self, text: str) -> None:
        """A person says something."""
        self.journal.append(Decision(kind="guide", by="ada", reason=text))

    def brief(self, parent: str, donor: str = "") -> Brief:
        """What an agent is told."""
        graph = self.history.phylogeny
        return self.breeder.brief(graph[parent], graph[donor] if donor else None, account=self.wallet)

    async def breed(self, agent: Agent, parent: str, donor: str | None = None) -> Bred:
        """Have an agent change the parent."""
        move = Move(operator="mutation", parents=(parent,), donor=donor)
        return await self.breeder.breed(agent, move, random.Random(1), number=7, account=self.wallet)

    def files(self, tree: str) -> dict[str, bytes]:
        """All files of a tree."""
        return self.repository.trees.files(tree, lambda _: True)


@pytest.fixture
def lab(tmp_path: Path, tiny: Callable[..., Task]) -> Lab:
    task = replace(
        tiny(),
        goal="Make main.py print a larger value.",
        editable=("*.py", "*.sh", "*.md", "src/**", "judge/**"),
        withheld=("judge/**",),
        metrics=(
            Metric(name="seconds", direction="minimize"),
            Metric(name="score", direction="maximize", primary=True, best_known=9.0),
        ),
    )
    return Lab(tmp_path / "repo", task)


def feedback(**said: str) -> dict[str, bytes]:
    """Evidence of an evaluation with feedback on cases."""
    return {"feedback.json": json.dumps(said).encode(), "log": b"all in all: fine", "stderr": b"Traceback: boom"}
