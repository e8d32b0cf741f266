"""A task as data, and back: evaluator processes get that of their engine, and start without a reader of files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import convert, to_builtins

from evogit.config import Task


def described(task: Task) -> dict[str, Any]:
    """A task as what JSON can say."""
    told: dict[str, Any] = to_builtins(task, enc_hook=str)  # of paths
    return told


def task_of(data: Mapping[str, Any]) -> Task:
    """The task that `described` made this of, with no digest known yet."""
    return convert(data, Task, dec_hook=lambda kind, text: kind(text))
