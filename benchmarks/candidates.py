"""Candidates for benchmarks of the sandbox, and the task whose evaluator evaluates them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from evogit.config import Task, load_task
from evogit.core import BaseFiles, Files
from evogit.evaluation.evaluator import Evaluator
from evogit.sandbox import Environment
from evogit.sandbox.archive import pack

TASK = """
name = "{name}"
goal = "Nothing."
editable = ["program.py"]
[metrics.score]
direction = "maximize"
[sandbox]
packages = {packages}
preload = {preload}
isolation = "{isolation}"
{runtime}
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
PLAIN = """
def solve(n):
    return sum(range(n)) + {number}

if __name__ == "__main__":
    print(solve(1000))
"""
NUMPY = PLAIN.replace("return sum(range(n))", "return int(numpy.arange(n).sum())")


@dataclass(frozen=True)
class Kind:
    """A sort of candidate: the text of its `program.py`, the other files of its tree, and what it imports."""

    name: str
    text: str
    tree: Mapping[str, bytes]
    packages: tuple[str, ...] = ()

    def program(self, number: int) -> bytes:
        """One that no other is equal to."""
        return self.text.format(number=number).encode()


def kinds() -> Iterator[Kind]:
    """From one file to thousands."""
    yield Kind("one file", PLAIN, {})
    yield Kind("numpy", "import numpy\n" + NUMPY, {}, ("numpy",))
    for size in (200, 5000):
        yield Kind(f"{size:,} files", "import part0.module0\n" + PLAIN, tree(size))


def tree(size: int) -> dict[str, bytes]:
    """Modules of two kilobytes, fifty in a folder."""
    lines = "".join(f"def function{line}(x):\n    return x + {line}\n\n" for line in range(45))
    return {f"part{number // 50}/module{number}.py": f"# {number}\n{lines}".encode() for number in range(size)}


def task_of(folder: Path, kind: Kind, environment: Environment) -> Task:
    """A small real task: one call, one case, one metric."""
    for name in ("seed", "evaluator"):
        (folder / name).mkdir(parents=True)
    packages, runtime = json.dumps(kind.packages), environment.runtime
    text = TASK.format(
        name=folder.name,
        packages=packages,
        preload=packages,
        isolation=environment.isolation,
        runtime=f'runtime = "{runtime}"' if runtime else "",
    )
    (folder / "task.toml").write_text(text)
    (folder / "seed" / "program.py").write_bytes(kind.program(0))
    (folder / "evaluator" / "evaluate.py").write_text(EVALUATE)
    return load_task(folder)


class Warm:
    """EvoGit's own: the files that all candidates share are the base, `program.py` is what differs."""

    def __init__(self, name: str, kind: Kind, evaluator: Evaluator) -> None:
        self.name = name
        self._kind = kind
        self._evaluator = evaluator
        archive = pack({**kind.tree, "program.py": kind.program(0)})
        self._base = BaseFiles(hashlib.sha256(archive).hexdigest(), archive)

    async def evaluate(self, number: int) -> None:
        """All that a run does to get an evaluation."""
        files = Files(pack({"program.py": self._kind.program(number)}), (), self._base)
        evaluation, evidence = await self._evaluator.evaluate(str(number), files, split="train")
        assert evaluation.metrics == {"score": 499500 + number}, (evaluation.reason, evidence.log)
