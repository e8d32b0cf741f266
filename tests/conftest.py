from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from evogit.config import Task, load_task

PROGRAM = """\
A = 1.0
B = 2.0
C = 3.0


def first(x):
    return A * x + B


def second(x):
    return C - x * x


def value(x):
    return first(x) + second(x)
"""

EVALUATE = """\
import time
from evogit import Case, Invalid

def evaluate(program, split):
    for x in {"smoke": [0], "train": [1, 2], "lite": [1], "holdout": [3]}[split]:
        y = program.call("program:value", args=[x], returns=float).value
        if y > 1e6:
            raise Invalid("expected a value of a million at most")
        yield Case(f"x={x}", score=-abs(y - 20))
"""

TOML = """\
name = "tiny"
goal = "Bring value(x) to 20."
editable = ["program.py", "extra/**"]
[metrics.score]
direction = "maximize"
best_known = 0
[evaluator]
kind = "python"
file = "evaluator/evaluate.py"
splits = ["smoke", "train", "holdout"]
gate.smoke = "score > -1e9"
[sandbox]
timeout = "5s"
"""


def write_task(folder: Path, *, evaluate: str = EVALUATE, program: str = PROGRAM, toml: str = TOML) -> Path:
    """A task folder whose candidates take milliseconds."""
    (folder / "seed").mkdir(parents=True)
    (folder / "evaluator").mkdir()
    (folder / "task.toml").write_text(toml)
    (folder / "seed" / "program.py").write_text(program)
    (folder / "evaluator" / "evaluate.py").write_text(evaluate)
    return folder


@pytest.fixture
def tiny(tmp_path: Path) -> Callable[..., Task]:
    """Makes tiny tasks; keywords replace its evaluator, seed program or task.toml."""

    def make(name: str = "tiny", **parts: str) -> Task:
        return load_task(write_task(tmp_path / "tasks" / name, **parts))

    return make
