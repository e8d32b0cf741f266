"""How a run stands with its Git server: noted by whoever exchanges, read by commands that need nothing else of it."""

from __future__ import annotations

import json
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import asdict

from evogit.repository.journal_records import MAX_TIME
from evogit.repository.shapes import reader
from evogit.repository.state_folder import StateFolder

MAX_CONTACT_BYTES = 1 << 20


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


def contact_folder(state: StateFolder) -> StateFolder:
    """Return the folder of notes on servers: RUN.json and RUN.lock."""
    return state.below("remotes")


def read_contact(state: StateFolder, run: str) -> Contact | None:
    """How a run stands with its server; None where it has none, or nothing was noted."""
    try:
        with contact_folder(state).opened() as folder:
            found: Contact = reader(Contact)(json.loads(folder.read(f"{run}.json", MAX_CONTACT_BYTES)))
    except (OSError, ValueError, RecursionError):
        return None
    return found if all(0 <= when <= MAX_TIME for when in (found.met, found.failing)) else None


def note_contact(state: StateFolder, run: str, contact: Contact) -> None:
    """Note how a run stands; a full disk is no error, as the note is for people to read."""
    with suppress(OSError), contact_folder(state).opened(make=True) as folder:
        folder.replace(f"{run}.json", [json.dumps(asdict(contact)).encode()])
