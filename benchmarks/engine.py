"""A run in which neither agents nor evaluations take time, so that what it takes is the engine's, Git included."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Literal

from evogit.agents import Agent, Brief, Proposal
from evogit.config import Task, load_task
from evogit.core import Evaluation, Evidence, Files
from evogit.engine.evaluations import EvaluationBackend
from evogit.events import Evaluated, Proposed
from evogit.repository import Repository

TASK = """
name = "null"
goal = "Nothing."
editable = ["program.py"]
[metrics.score]
direction = "maximize"
[evaluator]
kind = "python"
file = "evaluator/evaluate.py"
splits = ["train"]
"""


class NullAgent(Agent):
    """Changes one number of the one file at once."""

    kind = "null"

    async def propose(self, brief: Brief, rng: random.Random) -> Proposal:
        """A new value somewhere in a file of a hundred lines, so that merges have hunks to work on."""
        lines = brief.files["program.py"].split(b"\n")
        lines[rng.randrange(len(lines) - 1)] = b"x = %d" % rng.getrandbits(60)
        return Proposal(changes={"program.py": b"\n".join(lines)}, title="a new number")


class NullExecutor(EvaluationBackend):
    """Judges at once, with two kilobytes of output as evidence and a score that mostly rises."""

    digest, provider, image = "0" * 64, "none", "0" * 64
    judged: Literal["outside"] = "outside"

    def __init__(self) -> None:
        self._score = 0

    def key(self, tree: str, split: str, repeat: int = 0, *, base: str = "") -> str:
        """Every tree is new."""
        return tree

    async def evaluate(self, tree: str, files: Files, *, split: str, repeat: int = 0) -> tuple[Evaluation, Evidence]:
        """One more than the last."""
        self._score += 1
        evaluation = Evaluation(status="ok", metrics={"score": self._score}, split=split, key=tree)
        return evaluation, Evidence(stdout=random.Random(self._score).randbytes(1024).hex().encode())


def null_task(folder: Path) -> Task:
    """A task with a seed of a hundred lines."""
    (folder / "seed").mkdir(parents=True)
    (folder / "evaluator").mkdir()
    (folder / "task.toml").write_text(TASK)
    (folder / "seed" / "program.py").write_text("".join(f"x = {number}\n" for number in range(100)))
    (folder / "evaluator" / "evaluate.py").write_text("def evaluate(program, split):\n    yield\n")
    return load_task(folder)


class Unpacked(Repository):
    """A repository that is packed only when it is asked by name: packing is beside the loop, and measured apart."""

    async def pack(self) -> None:
        """Not now."""


def write_path(folder: Path, candidates: int) -> list[float]:
    """Milliseconds to store one candidate with its evidence: tree, commit, two keeps, two entries, one branch."""
    repository = Repository.create(folder)
    journal = repository.journal("r", lambda entry: None)
    times: list[float] = []
    tree = repository.trees.write(None, {"program.py": b"x = 1\n" * 100})
    parent = repository.commit(tree, (), author="a1", time=1, title="seed", trailers={})
    rng = random.Random(1)
    for number in range(candidates):
        content, output = b"x = %d\n" % number + rng.randbytes(1024).hex().encode(), rng.randbytes(1024).hex().encode()
        begin = time.perf_counter()
        tree = repository.trees.write(tree, {"program.py": content})
        parent = repository.commit(tree, (parent,), author="a1", time=number, title="t", trailers={"Agent": "a1"})
        journal.keep({}, parent)
        about = {"candidate": parent, "tree": tree, "parents": (), "agent": "a1", "title": "t"}
        journal.append(Proposed(engine="e", move=number, operator="mutation", **about))
        evidence = journal.keep({"stdout": output}, parent)
        journal.append(Evaluated(candidate=parent, evaluation=Evaluation(status="ok"), evidence=evidence))
        repository.move_branch("refs/heads/evogit/r/a1", parent)
        times.append(1000 * (time.perf_counter() - begin))
    return times
