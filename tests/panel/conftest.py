"""Tasks that are judged by comparison, models that judge, and runs without a sandbox."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from evogit.agents import Agent, Brief, Proposal
from evogit.config import Task, load_task
from evogit.core import Evaluation, Evidence
from evogit.history import History
from evogit.llm import Account, ModelError, Price, Question, TokenUsage
from evogit.repository import Repository
from evogit.run import Run, Settings
from evogit.testing import Answer, Asked, InMemoryBackend

TOML = """\
name = "short"
goal = "Say hello."
editable = ["*.txt"]
withheld = ["secret.txt"]
[evaluator]
kind = "judge"
criteria = "The shorter one is better."
panel = {panel}
{more}
"""


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Task]:
    """A task whose panel has these models."""

    def call(*panel: str, more: str = "") -> Task:
        folder = tmp_path / "short"
        (folder / "seed").mkdir(parents=True, exist_ok=True)
        (folder / "task.toml").write_text(TOML.format(panel=json.dumps(panel), more=more))
        (folder / "seed" / "main.txt").write_text("".join(f"line {number}\n" for number in range(20)))
        (folder / "seed" / "secret.txt").write_text("the withheld answer\n")
        return load_task(folder)

    return call


class Everyone(InMemoryBackend):
    """For it every candidate is valid."""

    def __init__(self, task: Task) -> None:
        super().__init__(task, self._valid, judged="pairs")

    def _valid(self, asked: Asked) -> Answer:
        known: dict[str, Any] = {"key": self.key(asked.tree, asked.split), "judged": "pairs", "evaluator": self.digest}
        return Evaluation(status="ok", metrics={"strength": 0.0}, split=asked.split, **known), Evidence()


class Typist(Agent):
    """An agent that takes some lines out or puts some in."""

    kind = "typist"

    async def propose(self, brief: Brief, rng: random.Random) -> Proposal:
        lines = brief.files["main.txt"].splitlines(keepends=True)
        many, place = rng.randrange(1, 4), rng.randrange(len(lines))
        fresh = [b"word %d\n" % rng.randrange(1000) for _ in range(many)] if rng.random() < 0.5 else []
        lines[place : place + many * (not fresh)] = fresh
        return Proposal(changes={"main.txt": b"".join(lines)}, title="type")


Saying = Callable[[str], str]
"""From a prompt to a reply."""


class Speaker:
    """A model that answers with what a function makes of the prompt, for a dollar a call."""

    price: Price | None = Price(prompt=1e6, cached=1e6, completion=0)
    context = 20_000

    def __init__(self, name: str, say: Saying) -> None:
        self.name = name
        self._say = say
        self.asked: list[Question] = []

    async def ask(self, question: Question, account: Account) -> str:
        account.check()
        self.asked.append(question)
        account.charge(self, TokenUsage(prompt=1, completion=1))
        reply = self._say(question.messages[1].content)
        if reply == "unreachable":
            raise ModelError("nobody there")
        return reply


def verdict(winner: str, reason: str = "so it is") -> str:
    return json.dumps({"winner": winner, "reason": reason})


def growth(prompt: str, size: Callable[[str], int] = lambda line: 1) -> tuple[int, int]:
    """By how much each of the two patches makes its side longer, in lines or what `size` says of one."""
    first, second = prompt.split("## The second candidate")
    grown = []
    for part in (first.split("## The first candidate")[1], second):
        lines = (re.findall(rf"^\{sign}(?!\{sign}).*", part, re.MULTILINE) for sign in "+-")
        added, removed = (sum(map(size, each)) for each in lines)
        grown.append(added - removed)
    return grown[0], grown[1]


def shorter(prompt: str, size: Callable[[str], int] = lambda line: 1, least: int = -10) -> str:
    """What an honest judge says for whom half of the text is not enough."""
    one, other = (length if length > least else 999 for length in growth(prompt, size))
    return verdict("tie" if one == other else "first" if one < other else "second")


def liar(prompt: str) -> str:
    opposite = {"first": "second", "second": "first", "tie": "tie"}
    return verdict(opposite[json.loads(shorter(prompt))["winner"]])


Go = Callable[..., Run]


@pytest.fixture
def prepare(tmp_path: Path) -> Go:
    """A run of a task with these models, on the repository that is there or a new one."""

    def call(task: Task, models: Sequence[Speaker], *, place: str = "repo", agents: int = 2, **options: Any) -> Run:
        path = tmp_path / place
        repository = Repository.open(path) if path.exists() else Repository.create(path)
        found = {model.name: model for model in models}
        settings = Settings(deterministic=True, **options)
        typists = [Typist() for _ in range(agents)]
        return Run(repository, task, "r", settings, models=found.__getitem__, agents=typists, backend=Everyone(task))

    return call


def lines_of(run: Run, commit: str | None) -> int:
    """How long a candidate's text is."""
    assert commit
    tree = run.history.phylogeny[commit].tree
    return run.repository.trees.lazily(tree, lambda path: True)["main.txt"].count(b"\n")


def again(run: Run) -> History:
    """The same history, read from the journal."""
    history = History("r")
    run.repository.journal("r", history.apply)
    return history
