"""What the engine and its evaluator processes say to each other: a length-prefixed JSON header and a binary body.

Everything that crosses the pipe as a record is written and read here.
"""

from __future__ import annotations

import json
import signal
import struct
from collections.abc import Mapping
from typing import Any

from msgspec import convert, to_builtins
from msgspec.structs import asdict

from evogit.config import Task
from evogit.core import ConfigError, Cost, Evaluation, EvaluatorError, Evidence, SandboxError, UsageError
from evogit.sandbox import Completed, ResourceUsage

PREFIX = struct.Struct(">IQ")
"""Lengths of header and body, before each frame."""

KINDS = (ConfigError, EvaluatorError, SandboxError, UsageError)
"""Errors that stay what they are on their way to the engine."""

PATIENCE = 6
"""Times `sandbox.total` that an evaluation may last: candidate, seed, lives of each of them, and the evaluator."""

LATE = {signal.SIGPROF: "CPU", signal.SIGALRM: "wall clock"}
"""The signals by which the kernel ends an evaluator that takes too long, whatever it does, and too long of what."""


def frame(header: Mapping[str, Any], body: bytes = b"") -> bytes:
    """One message, as it goes over the pipe in either direction."""
    text = json.dumps(header, allow_nan=False).encode()
    return PREFIX.pack(len(text), len(body)) + text + body


def evaluation_frame(evaluation: Evaluation, evidence: Evidence) -> bytes:
    """How an evaluation ended; its cases, and what was said of them, went over the pipe as they came."""
    told = {
        "status": evaluation.status,
        "metrics": evaluation.metrics,
        "stages": evaluation.stages,
        "reason": evaluation.reason,
        "cost": asdict(evaluation.cost),
        "starved": evaluation.starved,
    }
    header = {"evaluation": told, "log": evidence.log, "stdout": len(evidence.stdout)}
    return frame(header, evidence.stdout + evidence.stderr)


def evaluation_of(header: Mapping[str, Any], body: bytes) -> tuple[Evaluation, Evidence]:
    """What `evaluation_frame` made this of."""
    told, cut = header["evaluation"], header["stdout"]
    evaluation = Evaluation(**{**told, "cost": Cost(**told["cost"])})
    return evaluation, Evidence(stdout=body[:cut], stderr=body[cut:], log=header["log"])


def completed_frame(done: Completed) -> bytes:
    """How a command ended."""
    told = {"code": done.code, "signal": done.signal, "breach": done.breach, "detail": done.detail}
    header = {"ran": {**told, "usage": asdict(done.usage)}, "stdout": len(done.stdout)}
    return frame(header, done.stdout + done.stderr)


def completed_of(header: Mapping[str, Any], body: bytes) -> Completed:
    """What `completed_frame` made this of."""
    told, cut = header["ran"], header["stdout"]
    return Completed(**{**told, "usage": ResourceUsage(**told["usage"])}, stdout=body[:cut], stderr=body[cut:])


def described(task: Task) -> dict[str, Any]:
    """Return a task as JSON types."""
    fields: dict[str, Any] = to_builtins(task, enc_hook=str)  # of paths
    return fields


def task_of(data: Mapping[str, Any]) -> Task:
    """The task that `described` made this of, with no digest known yet."""
    return convert(data, Task, dec_hook=lambda kind, text: kind(text))


def late_reason(number: int, total: float) -> str:
    """Return the reason of an evaluation whose evaluator this signal ended; empty if it is not one of `LATE`."""
    if number not in LATE:
        return ""
    most = total if number == signal.SIGPROF else PATIENCE * total
    return f"judging what it returned took more than {most:g} s of {LATE[signal.Signals(number)]} (sandbox.total)"
