"""What the engine and its evaluator processes say to each other: a length-prefixed JSON header and a binary body.

Everything that crosses the pipe as a record is written and read here.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any

from msgspec.structs import asdict

from evogit.core import ConfigError, Cost, Evaluation, EvaluatorError, Evidence, SandboxError, UsageError
from evogit.sandbox import Completed, ResourceUsage

PREFIX = struct.Struct(">IQ")
"""Lengths of header and body, before each frame."""

KINDS = (ConfigError, EvaluatorError, SandboxError, UsageError)
"""Errors that stay what they are on their way to the engine."""


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
