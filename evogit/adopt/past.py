"""A run of another system as it is read: its programs with their scores there."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from evogit.core import UsageError

MAX_RUN_BYTES = 1 << 30  # bytes of the files of a run, or of its database
MAX_PROGRAM_BYTES = 32 << 20  # bytes of a file about a program, or of a value in a database
LATEST = 1 << 33  # seconds since the epoch, beyond which a number is no time: it may be one of milliseconds


class Past(Struct, frozen=True):
    """A program that another system evaluated."""

    id: str  # what that system calls it
    files: Mapping[str, bytes]  # path -> content of what differs from the task's seed
    value: float | None  # its score there; None where it has none, as it failed
    parent: str = ""  # the id of the program that it was made of; empty where it was of none
    shown: Sequence[str] = ()  # ids of programs that whoever made it was shown besides
    title: str = ""  # what it is said to change
    failure: str = ""  # why it has no score, as far as that is said
    # the metrics that it has beside its score, or among which that is
    numbers: Mapping[str, float] = field(default_factory=dict)
    told: Mapping[str, str] = field(default_factory=dict)  # what else is known of how it was made, such as its island
    feedback: str = ""  # what its evaluation said
    time: int = 0  # seconds since the epoch


class PastRun(Struct, frozen=True):
    """What another system found."""

    system: str  # which one it was
    programs: Sequence[Past]  # parents first
    unread: int = 0  # programs, or rows of a table, that are there and cannot be read

    @property
    def orphans(self) -> int:
        """Programs whose parent is not among them."""
        known = {each.id for each in self.programs}
        return sum(each.parent != "" and each.parent not in known for each in self.programs)


def in_order(programs: Sequence[Past]) -> list[Past]:
    """Parents before children, else as they came."""
    known = {each.id: each for each in programs}
    ordered: dict[str, Past] = {}
    for each in programs:
        line = []
        at: Past | None = each
        while at and at.id not in ordered and at not in line:
            line.append(at)
            at = known.get(at.parent)
        ordered.update({one.id: one for one in reversed(line)})
    return list(ordered.values())


def finite(value: Any) -> float | None:
    """A number, None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    with suppress(OverflowError):
        return float(value) if math.isfinite(value) else None
    return None


def only_one(path: Path, found: Collection[Path]) -> None:
    """Refuse to choose between several runs.

    Raises:
        UsageError: naming them.
    """
    if len(found) > 1:
        names = ", ".join(sorted(map(str, found)))
        raise UsageError(f"{path} holds {len(found)} runs of another system; name one of them: {names}")


def numbers_of(metrics: Mapping[str, Any]) -> dict[str, float]:
    """Those of some metrics that are finite numbers."""
    return {name: number for name, value in metrics.items() if (number := finite(value)) is not None}


def moment(value: object) -> int:
    """Seconds since the epoch; 0 for what is no time that a commit can have."""
    found = finite(value) or 0
    return int(found) if 0 <= found < LATEST else 0


def object_of(value: object) -> dict[str, Any]:
    """An object, or JSON that is one; empty where it is none, or not whole."""
    found = _parsed(value)
    return found if isinstance(found, dict) else {}


def list_of(value: object) -> list[Any]:
    """A list, or JSON that is one; empty where it is none, or not whole."""
    found = _parsed(value)
    return found if isinstance(found, list) else []


def _parsed(value: object) -> object:
    with suppress(ValueError, RecursionError, MemoryError):
        return json.loads(value) if isinstance(value, str) else value
    return None
