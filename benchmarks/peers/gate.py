"""The gate: the one place where candidates of all systems are counted, timed and scored.

Run: `python gate.py`; it prints its address. `/open` begins a run with a task and a budget. `/evaluate` scores a
candidate of it, and refuses with 410 once the budget is used up. `/run` tells what was evaluated, `/count` only how
many. The seed counts, and so does what was there already: it is marked, not forgiven.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import json
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from serving import serve

SCORERS = 2
"""Processes that score candidates of a task at a time."""


@dataclass(frozen=True)
class Evaluated:
    """One evaluation: what of, when since the run was opened, in seconds, and what came of it."""

    key: str
    at: float
    ok: bool
    score: float
    seconds: float
    cpu: float
    duplicate: bool


@dataclass
class Counted:
    """A run as the gate sees it."""

    task: Task
    budget: int
    opened: float = field(default_factory=time.monotonic)
    taken: int = 0
    known: set[str] = field(default_factory=set)
    evaluated: dict[int, Evaluated] = field(default_factory=dict)


class Scorer:
    """A process that scores candidates of a task, one at a time."""

    def __init__(self, python: str, kind: str, folder: str) -> None:
        script = Path(__file__).parent / "scoring.py"
        self._process = subprocess.Popen(
            [python, str(script), kind, folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def score(self, text: str) -> dict[str, Any]:
        """What a candidate is worth."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps({"text": text}) + "\n")
        self._process.stdin.flush()
        found: dict[str, Any] = json.loads(self._process.stdout.readline())
        return found


class Task:
    """A task with its scorers."""

    def __init__(self, **how: str) -> None:
        self._free: queue.SimpleQueue[Scorer] = queue.SimpleQueue()
        for _ in range(SCORERS):
            self._free.put(Scorer(**how))

    def score(self, text: str) -> dict[str, Any]:
        """What a candidate is worth, as soon as a scorer is free."""
        scorer = self._free.get()
        try:
            return scorer.score(text)
        finally:
            self._free.put(scorer)


class Gate:
    """All runs, and the tasks that they are of."""

    def __init__(self) -> None:
        self._runs: dict[str, Counted] = {}
        self._tasks: dict[str, Task] = {}
        self._lock = threading.Lock()

    def answer(self, path: str, body: Mapping[str, Any]) -> tuple[int, Mapping[str, Any]]:
        """What is replied to a request."""
        if path == "/open":
            return 200, self.open(**body)
        run = self._runs[body["run"]]
        if path == "/count":
            return 200, {"evaluated": len(run.evaluated)}
        return self.evaluate(run, body["text"]) if path == "/evaluate" else (200, self.tell(run))

    def open(self, run: str, budget: int, **task: str) -> Mapping[str, Any]:
        """Begin a run; scorers of its task are started where there are none."""
        with self._lock:
            name = json.dumps(task, sort_keys=True)
            if name not in self._tasks:
                self._tasks[name] = Task(**task)
            self._runs[run] = Counted(self._tasks[name], budget)
        return {}

    def evaluate(self, run: Counted, text: str) -> tuple[int, Mapping[str, Any]]:
        """Score a candidate, or refuse to."""
        key = fingerprint(text)
        with self._lock:
            if run.taken == run.budget:
                return 410, {"refused": f"all {run.budget} evaluations were made"}
            number = run.taken
            run.taken += 1
            duplicate = key in run.known
            run.known.add(key)
            at = time.monotonic() - run.opened
        found = run.task.score(text)
        run.evaluated[number] = Evaluated(
            key, at, found["ok"], found["score"], found["seconds"], found["cpu"], duplicate
        )
        return 200, {"ok": found["ok"], "score": found["score"], "feedback": found["feedback"], "number": number}

    def tell(self, run: Counted) -> Mapping[str, Any]:
        """What was evaluated, in the order in which it came."""
        done = dict(run.evaluated)
        now = time.monotonic() - run.opened
        return {"taken": run.taken, "now": now, "evaluated": [asdict(done[number]) for number in sorted(done)]}


def fingerprint(text: str) -> str:
    """The same for programs that differ in comments and layout alone."""
    with contextlib.suppress(SyntaxError, ValueError):  # what is no Python counts as it is
        text = ast.unparse(ast.parse(text))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


if __name__ == "__main__":
    sys.exit(serve(Gate().answer))
