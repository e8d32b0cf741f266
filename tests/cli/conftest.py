"""Real repositories with a small history of known shape, and the real command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from evogit.core import (
    Adopted,
    Evaluated,
    Evaluation,
    Metric,
    Operator,
    Proposed,
    RunStarted,
    Status,
    Stopped,
)
from evogit.history import History
from evogit.repository import Repository

EVOGIT = Path(sys.executable).with_name("evogit")


class Story:
    """Writes a run into a repository as an engine would."""

    def __init__(self, folder: Path, run: str = "toy", direction: str = "maximize") -> None:
        self.repository = Repository.create(folder) if not (folder / ".git").exists() else Repository.open(folder)
        self.folder, self.history = folder, History(run)
        self.journal = self.repository.journal(run, self.history.apply)
        self.moves = 0
        self.journal.append(
            RunStarted(
                engine="e",
                task="toy",
                task_digest="t",
                metrics=(Metric(name="score", direction=direction, primary=True, best_known=3.0),),  # type: ignore[arg-type]
                split="train",
                evaluator="v",
                provider="none",
                image="i",
                agents=("a1", "a2"),
                population=f"refs/heads/evogit/{run}/",
                editable=("*.py",),
            )
        )

    def add(
        self,
        value: float | None,
        *parents: str,
        agent: str = "a1",
        title: str = "",
        files: Mapping[str, bytes] | None = None,
        status: Status = "timeout",
        reason: str = "10 s",
        adopt: bool = False,
        holdout: float | None = None,
    ) -> str:
        """A candidate that was evaluated to `value`, or failed with `status` when it is None; its id."""
        changes = files or {"main.py": f"VALUE = {self.moves}\n".encode()}
        tree = self.repository.trees.write(self.repository.tree_of(parents[0]) if parents else None, changes)
        operators: list[Operator] = ["seed", "mutation", "merge"]
        operator = operators[len(parents)]
        commit = self.repository.commit(
            tree, parents, author=agent, time=1_700_000_000 + self.moves, title=title, trailers={"Agent": agent}
        )
        self.journal.keep({}, commit)
        self.journal.append(
            Proposed(
                engine="e",
                move=self.moves,
                candidate=commit,
                tree=tree,
                parents=parents,
                agent=agent,
                operator=operator,
                title=title,
            )
        )
        self.moves += 1
        self.judge(commit, value, status=status, reason=reason)
        if holdout is not None:
            self.judge(commit, holdout, split="holdout")
        if adopt:
            self.journal.append(Adopted(agent=agent, candidate=commit))
        return commit

    def judge(
        self, commit: str, value: float | None, split: str = "train", status: Status = "timeout", reason: str = ""
    ) -> None:
        """Evaluate a candidate once more."""
        if value is not None:
            evaluation = Evaluation(status="ok", metrics={"score": value}, split=split)
        else:
            evaluation = Evaluation(status=status, reason=reason, split=split)
        evidence = self.journal.keep({"stdout": b"hello\n"}, commit)
        self.journal.append(Evaluated(candidate=commit, evaluation=evaluation, evidence=evidence))

    def stop(self) -> None:
        """End in good order."""
        self.journal.append(Stopped(engine="e", reason="evaluations"))


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


Cli = Callable[..., Done]


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """Runs the real `evogit` in a folder, without a terminal."""

    def call(*arguments: str | Path, cwd: Path = tmp_path, input: str = "", **env: str) -> Done:
        clean = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LANG": "C.UTF-8", **env}
        done = subprocess.run(
            [EVOGIT, *arguments], cwd=cwd, env=clean, input=input, capture_output=True, text=True, timeout=60
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Done(done.returncode, done.stdout, done.stderr)

    return call


@dataclass(frozen=True)
class Small:
    """Ids of the candidates of the small history."""

    folder: Path
    seed: str
    step: str
    fail: str
    left: str
    right: str
    dead: str
    merge: str


@pytest.fixture
def small(tmp_path: Path) -> Small:
    r"""Two agents, seven candidates.

    seed 1.0 --- step 1.5 --- left 1.7 --- merge 2.0 (best)
      \             \ \----- right 1.6 ---/
       fail          dead 1.2
    """
    story = Story(tmp_path / "repo")
    seed = story.add(1.0, title="Seed", holdout=1.1)
    step = story.add(1.5, seed, title="replace greedy start", adopt=True)
    fail = story.add(None, seed, agent="a2", title="too slow")
    left = story.add(1.7, step, title="corner circles first", adopt=True)
    right = story.add(1.6, step, agent="a2", title="adaptive step size", adopt=True)
    dead = story.add(1.2, step, agent="a2", title="a dead end")
    merge = story.add(2.0, left, right, title="merge: start and step size", adopt=True, holdout=1.9)
    story.stop()
    return Small(story.folder, seed, step, fail, left, right, dead, merge)
