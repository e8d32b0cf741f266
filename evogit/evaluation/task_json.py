"""A task as data, and back: evaluator processes get that of their engine, and start without a reader of files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from evogit.config import Task
from evogit.config.values import EvaluationCommand, Gate, MetricReader, Pairwise
from evogit.core import Metric
from evogit.sandbox import Environment
from evogit.sandbox.limits import Limits

_PATHS = ("folder", "evaluator", "seed")


def described(task: Task) -> dict[str, Any]:
    """A task as what JSON can say."""
    return {name: str(value) if name in _PATHS and value else value for name, value in asdict(task).items()}


def task_of(data: Mapping[str, Any]) -> Task:
    """The task that `described` made this of, with no digest known yet."""
    command, pairwise, metrics = data["command"], data["pairwise"], data["metrics"]
    parts: dict[str, Any] = {
        "metrics": tuple(Metric(**each) for each in metrics),
        "gates": {split: Gate(**each) for split, each in data["gates"].items()},
        "command": command
        and EvaluationCommand(**{**command, "reads": {m: MetricReader(**r) for m, r in command["reads"].items()}}),
        "pairwise": pairwise and Pairwise(**_with_tuples(pairwise)),
        "limits": Limits(**data["limits"]),
        "environment": Environment(**_with_tuples(data["environment"])),
        **{name: data[name] and Path(data[name]) for name in _PATHS},
    }
    return Task(**{**_with_tuples(data), **parts})


def _with_tuples(data: Mapping[str, Any]) -> dict[str, Any]:
    """JSON has lists alone, and nothing of ours can be changed."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}
