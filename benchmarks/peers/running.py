"""One run of a system on a task: started, metered, ended when the gate has closed, and what came of it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from environments import Environment
from metering import Meter
from serving import Served
from systems import Job, System

from tasks import PACKAGES, Task

STALLED = 300.0
"""Seconds without an evaluation after which a run is ended."""
LOOK = 0.25
"""Seconds between looks at the gate."""


@dataclass(frozen=True)
class Plan:
    """What is to be run."""

    system: System
    task: Task
    kind: str
    seed: int
    budget: int
    label: str = ""

    @property
    def name(self) -> str:
        """Unique among all."""
        return "-".join(filter(None, [self.system.name, self.task.name, self.kind, str(self.seed), self.label]))


@dataclass(frozen=True)
class Outcome:
    """What came of it; `scores` are those of the gate in order, failures as None, `keys` say which were the same."""

    system: str
    task: str
    kind: str
    seed: int
    scores: list[float | None]
    keys: list[str]
    duplicates: int
    wall: float
    cpu: float
    memory: float
    scoring: float
    scoring_cpu: float
    first: float
    """Seconds from the command to the first evaluation after the seed's."""
    asked: dict[str, Any]
    note: str = ""


@dataclass
class Bench:
    """The servers, the environments, and where runs lie."""

    gate: Served
    model: Served
    environments: dict[tuple[str, ...], Environment]
    folder: Path
    examples: Path = field(default_factory=Path)

    def job(self, plan: Plan) -> Job:
        """The folder and the addresses of a run, which is opened at the gate and at the model."""
        task, run = plan.task, plan.name
        python = str(self.environments[PACKAGES].python) if task.is_example else str(self.environments[()].python)
        self.gate.ask("/open", run=run, budget=plan.budget, python=python, kind=task.kind, folder=str(task.folder))
        self.model.ask("/open", run=run, seed=plan.seed, kind=plan.kind)
        folder = self.folder / run
        folder.mkdir(parents=True)
        address = f"{self.model.url}/{plan.system.speaker}/{run}/v1"
        found = self.environments[plan.system.packages]
        return Job(run, folder, task.program, task.goal, self.gate.url, address, plan.budget, plan.seed, found.python)

    def run(self, plan: Plan) -> Outcome:
        """Run to the end of the budget."""
        job = self.job(plan)
        meter, wall, note = self.watch(plan.system, job, plan.system.begin(job), plan.budget)
        return self.outcome(plan, meter, wall, note)

    def watch(self, system: System, job: Job, command: Sequence[str], until: int) -> tuple[Meter, float, str]:
        """Let a command work until the gate has evaluated so many; then all of it is killed."""
        began = time.monotonic()
        with (job.folder / "log.txt").open("ab") as log:
            process = subprocess.Popen(
                command,
                cwd=job.folder,
                env={**os.environ, **system.environment(job)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            meter, note = Meter(process.pid), ""
            count, changed, looks = -1, began, 0
            while process.poll() is None:
                evaluated = self.gate.ask("/count", run=job.run)["evaluated"]
                if evaluated != count:
                    count, changed = evaluated, time.monotonic()
                meter.read(memory=looks % 8 == 7)
                looks += 1
                if count >= until:
                    break
                if time.monotonic() - changed > STALLED:
                    note = f"no evaluation for {STALLED:.0f} s after {count}"
                    break
                time.sleep(LOOK)
            wall = time.monotonic() - began
            ended(process, meter)
        if process.returncode not in (0, -signal.SIGKILL):
            note = note or f"exit {process.returncode} after {self.gate.ask('/count', run=job.run)['evaluated']}"
        return meter, wall, note

    def outcome(self, plan: Plan, meter: Meter, wall: float, note: str) -> Outcome:
        """What the gate, the model and the meter have counted."""
        told = self.gate.ask("/run", run=plan.name)["evaluated"]
        return Outcome(
            plan.system.name,
            plan.task.name,
            plan.kind,
            plan.seed,
            scores=[each["score"] if each["ok"] else None for each in told],
            keys=[each["key"] for each in told],
            duplicates=sum(each["duplicate"] for each in told),
            wall=wall,
            cpu=meter.cpu,
            memory=meter.memory,
            scoring=sum(each["seconds"] for each in told),
            scoring_cpu=sum(each["cpu"] for each in told),
            first=told[1]["at"] if len(told) > 1 else 0.0,
            asked=self.model.ask("/run", run=plan.name),
            note=note,
        )


def ended(process: subprocess.Popen[bytes], meter: Meter) -> None:
    """Kill a system and all that it started, as a crash of the machine would."""
    for pid in [process.pid, *meter.processes()]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()
