"""A broken limit on its whole way: from the sandbox into the journal, the next brief's sentence, and `evogit show`."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from evogit.agents import Agent, Brief, Proposal
from evogit.config import Task
from evogit.events import Entry, Evaluated
from evogit.repository import Repository
from evogit.run import Run, Settings

from .conftest import Cli

TOML = """\
name = "limits"
goal = "Stay within them."
editable = ["program.py"]
[metrics.score]
direction = "maximize"
[evaluator]
kind = "python"
file = "evaluator/evaluate.py"
[sandbox]
timeout = "60s"
cpu = "1s"
memory = "64m"
disk = "8m"
pids = 8
"""

EVALUATE = """\
from evogit import Case

def evaluate(program, split):
    for reply in program.stream("program:value", [1, 2, 3], returns=int):
        yield Case(f"x={reply.value}", score=reply.value)
    program.call("program:value", [4], returns=int)
"""

BREACHES = {
    "timeout": ("while True: pass", r"killed after 1 s of CPU in item 2 of 3"),
    "out-of-memory": ("kept = [bytes([1]) * 2**20 for _ in range(500)]", r"\d+ MiB of memory in item 2 of 3"),
    "output-limit": ("print('y' * (2 << 20))", "wrote more than 1048576 bytes of output in item 2 of 3"),
    "process-limit": (
        "import threading, time\n  for _ in range(20): threading.Thread(target=time.sleep, args=(9,)).start()\n"
        "  time.sleep(30)",
        r"had \d+ processes and threads in item 2 of 3|can't start new thread",
    ),
    "disk-limit": (
        "import time\n  with open('big', 'wb') as f: f.write(bytes(2**20) * 12)\n  time.sleep(30)",
        r"wrote .* in item 2 of 3",
    ),
    "crashed": ("import os; os._exit(3)", "exited with code 3 before replying in item 2 of 3"),
}


class Listed(Agent):
    """An agent with a list of programs."""

    kind = "listed"

    def __init__(self, programs: Iterator[str]) -> None:
        self._programs = programs

    async def propose(self, brief: Brief, rng: Any) -> Proposal:
        await asyncio.sleep(0)
        return Proposal(changes={"program.py": next(self._programs).encode()}, title="break it")


@pytest.fixture
def broken(tmp_path: Path, tiny: Callable[..., Task]) -> dict[str, Evaluated]:
    """A run in which one candidate breaks each limit: how each was evaluated."""
    task = tiny(evaluate=EVALUATE, toml=TOML, program="def value(x): return x\n")
    programs = (f"def value(x):\n if x == 2:\n  {body}\n return x\n" for body, _ in BREACHES.values())
    repository = Repository.create(tmp_path / "r")
    settings = Settings(evaluations=1 + len(BREACHES), jobs=1, sandbox="bubblewrap")
    asyncio.run(Run(repository, task, "limits", settings, agents=[Listed(programs)]).evolve())
    seen: list[Entry] = []
    repository.journal("limits", seen.append)
    judged = [entry.event for entry in seen if isinstance(entry.event, Evaluated)]
    return dict(zip(["ok", *BREACHES], judged, strict=True))


@pytest.mark.slow
def test_each_breach_is_told_with_its_limit_and_its_place(
    tmp_path: Path, broken: dict[str, Evaluated], cli: Cli
) -> None:
    for status, (_, reason) in BREACHES.items():
        evaluation = broken[status].evaluation
        assert (evaluation.status, evaluation.metrics) == (status, {}), evaluation.reason
        assert re.search(reason, evaluation.reason), evaluation.reason
        assert evaluation.cases == {"x=1": {"score": 1}}, "what came before stays"
        shown = cli("show", broken[status].candidate, cwd=tmp_path / "r").out
        assert f"{status} on train, " in shown
        assert evaluation.reason in shown
        record = cli("show", broken[status].candidate, "--json", cwd=tmp_path / "r").json
        assert (record["status"], record["reason"]) == (status, evaluation.reason)
    assert broken["ok"].evaluation.ok
