"""What the engine and the process that reads for it both know; that process does without asyncio, and starts sooner."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

LONGEST_READING = 20.0
"""Seconds in which something must be read, by the clock; the process has as many of CPU. What takes longer is made to.
"""


class UnreadableError(Exception):
    """What was sent cannot be read, with HTTP's status where it is a request, and the reason."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def head(told: Mapping[str, Any], size: int) -> bytes:
    """The line before a content of so many bytes."""
    return json.dumps({**told, "bytes": size}).encode() + b"\n"
