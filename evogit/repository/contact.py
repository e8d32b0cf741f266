"""How a run stands with its Git server: noted by whoever exchanges, read by commands that need nothing else of it."""

from __future__ import annotations

import json
from pathlib import Path

from msgspec import Struct

from evogit.repository.journal_records import MAX_TIME
from evogit.repository.shapes import reader


class Contact(Struct, frozen=True):
    """How a run stands with a server, for who wants to know: a file that can be deleted.

    Attributes:
        remote: its name, or its address without a password.
        prefix: where it takes our refs; empty until that is known.
        met: when all was exchanged last, in seconds since the epoch; 0: never.
        failing: when attempts began to fail, 0 while they do not; tries: how many failed; why: the last reason.
        notes: what was left out of what came last.
    """

    remote: str
    prefix: str = ""
    met: float = 0.0
    failing: float = 0.0
    tries: int = 0
    why: str = ""
    notes: tuple[str, ...] = ()


def contact_file(common: Path, run: str) -> Path:
    """Where it is noted how a run stands with its server."""
    return common / "evogit" / "remotes" / f"{run}.json"


def read_contact(common: Path, run: str) -> Contact | None:
    """How a run stands with its server; None where it has none, or nothing was noted."""
    try:
        found: Contact = reader(Contact)(json.loads(contact_file(common, run).read_text(encoding="utf-8")))
    except (OSError, ValueError, RecursionError):
        return None
    return found if all(0 <= when <= MAX_TIME for when in (found.met, found.failing)) else None
