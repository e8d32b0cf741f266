"""What else is tried on each system: a kill, the same seed twice, forged scores, what a user writes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from environments import version
from forging import forged
from results import Results
from running import Bench, Plan
from systems import System

from tasks import Task

KILLED = 0.6
"""The share of the budget after which a system is killed."""
REPEATED = 0.25
"""The share of the budget for each of two runs with the same seed."""


def trials(bench: Bench, system: System, task: Task, budget: int, results: Results) -> None:
    """All of them on one task; what is known already is not tried again."""
    done = {trial for name, trial in list(results.trials) if name == system.name}
    if "set-up" not in done:
        results.add_trial(system.name, "set-up", **set_up(bench, system, task))
    if "kill" not in done and system.resumes:
        results.add_trial(system.name, "kill", **killed(bench, Plan(system, task, "blind", 0, budget, "kill")))
    if "repeat" not in done:
        plans = [Plan(system, task, "blind", 0, int(REPEATED * budget), f"repeat{number}") for number in (1, 2)]
        results.add_trial(system.name, "repeat", **repeated(bench, plans))
    if "forge" not in done and (found := forged(system.speaker, bench.environments[system.packages])):
        results.add_trial(system.name, "forge", believed=found.believed, tried=found.tried)


def set_up(bench: Bench, system: System, task: Task) -> dict[str, object]:
    """The lines that a user writes beside the program and the goal, and what has to be installed."""
    job = bench.job(Plan(system, task, "blind", 0, 1, "set-up"))
    system.begin(job)
    files = [file for file in sorted(job.folder.rglob("*")) if file.is_file() and not is_given(file, job.program)]
    found = bench.environments[system.packages]
    return {
        "files": len(files),
        "lines": sum(len(file.read_text().splitlines()) for file in files),
        "version": version(found, system.packages[0] if system.packages else "evogit"),
        "seconds": found.seconds,
        "packages": found.packages,
        "megabytes": found.megabytes,
    }


def is_given(file: Path, program: str) -> bool:
    """Whether a file is the program, or the text of the goal."""
    return file.suffix == ".md" or file.read_text() == program


def killed(bench: Bench, plan: Plan) -> dict[str, object]:
    """Kill a system at work, count what its files still have, and let it go on."""
    job, until = bench.job(plan), int(KILLED * plan.budget)
    bench.watch(plan.system, job, plan.system.begin(job), until)
    time.sleep(1)  # what the gate was given just before
    evaluated = bench.gate.ask("/count", run=plan.name)["evaluated"]
    kept = plan.system.kept(job)
    bench.watch(plan.system, job, plan.system.resume(job), plan.budget)
    after = bench.gate.ask("/run", run=plan.name)["evaluated"]
    again = {each["key"] for each in after[:evaluated]}
    return {
        "evaluated": evaluated,
        "lost": max(0, evaluated - kept),
        "again": sum(each["key"] in again for each in after[evaluated:]),
        "reached": len(after),
    }


def repeated(bench: Bench, plans: Sequence[Plan]) -> dict[str, object]:
    """The number of the first candidate that differs between runs with the same seed; -1 where none does."""
    one, other = (bench.run(plan).keys for plan in plans)
    differing = [at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b]
    return {"differs": differing[0] if differing else -1, "compared": min(len(one), len(other))}
