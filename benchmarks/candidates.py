"""The candidates that benchmarks of the sandbox evaluate, and the task whose evaluator evaluates them."""

from __future__ import annotations

import hashlib
from pathlib import Path

from evogit.config import Task, load_task
from evogit.core import BaseFiles, Files
from evogit.evaluation.evaluator import Evaluator
from evogit.sandbox.archive import pack

TASK = """
name = "{name}"
goal = "Nothing."
editable = ["program.py"]
[metrics.score]
direction = "maximize"
[evaluator]
kind = "python"
file = "evaluator/evaluate.py"
splits = ["train"]
"""
EVALUATE = """
from evogit.evaluation.program import Case

def evaluate(program, split):
    yield Case("one", score=program.call("program:solve", [1000], returns=int).value)
"""
PROGRAM = """
def solve(n):
    return sum(range(n)) + {number}

if __name__ == "__main__":
    print(solve(1000))
"""


def program(number: int) -> bytes:
    """Return a candidate that no other is equal to."""
    return PROGRAM.format(number=number).encode()


def task_of(folder: Path) -> Task:
    """Make a small real task: one call, one case, one metric."""
    for name in ("seed", "evaluator"):
        (folder / name).mkdir(parents=True)
    (folder / "task.toml").write_text(TASK.format(name=folder.name))
    (folder / "seed" / "program.py").write_bytes(program(0))
    (folder / "evaluator" / "evaluate.py").write_text(EVALUATE)
    return load_task(folder)


class Warm:
    """EvoGit's own way: the files that all candidates share are the base, `program.py` is what differs."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        archive = pack({"program.py": program(0)})
        self._base = BaseFiles(hashlib.sha256(archive).hexdigest(), archive)

    async def evaluate(self, number: int) -> None:
        """Do all that a run does to get an evaluation."""
        files = Files(pack({"program.py": program(number)}), (), self._base)
        evaluation, evidence = await self._evaluator.evaluate(str(number), files, split="train")
        assert evaluation.metrics == {"score": 499500 + number}, (evaluation.reason, evidence.log)
