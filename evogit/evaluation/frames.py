"""What the engine and its evaluator processes say to each other: a length-prefixed JSON header and a binary body."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any

from evogit.core import ConfigError, EvaluatorError, SandboxError, UsageError

PREFIX = struct.Struct(">IQ")
"""Lengths of header and body, before each frame."""

KINDS = (ConfigError, EvaluatorError, SandboxError, UsageError)
"""Errors that stay what they are on their way to the engine."""


def frame(header: Mapping[str, Any], body: bytes = b"") -> bytes:
    """One message, as it goes over the pipe in either direction."""
    text = json.dumps(header, allow_nan=False).encode()
    return PREFIX.pack(len(text), len(body)) + text + body
