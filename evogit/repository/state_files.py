"""Small files beside the refs: notes about a run or this machine that can be deleted."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from contextlib import suppress
from functools import cached_property
from mmap import ACCESS_READ, mmap
from pathlib import Path

import msgspec
from msgspec import Struct

from evogit.core import RepositoryError, Whole
from evogit.repository.journal_records import MAX_TIME
from evogit.repository.state_folder import StateFolder

BOOT = Path("/proc/sys/kernel/random/boot_id")


class Holdouts:
    """Those of one clone."""

    def __init__(self, state: StateFolder) -> None:
        self._state = state.below("holdouts")

    def show(self, task: str) -> None:
        """Remember that a candidate is shown a task's holdout. Raises RepositoryError: it cannot be."""
        try:
            with self._marks.opened(make=True) as folder:
                folder.write_once(_mark(task), b"")
        except OSError as error:
            raise RepositoryError(
                f"expected to be allowed to note in {error.filename} that a holdout was shown: {error.strerror}"
            ) from error

    def shown(self, task: str) -> bool:
        """Return True if the task's holdout was shown since this machine was started."""
        with suppress(FileNotFoundError), self._marks.opened() as folder:
            return folder.holds(_mark(task))
        return False

    @cached_property
    def _marks(self) -> StateFolder:
        return self._state.below(BOOT.read_text().strip() if BOOT.exists() else "unknown")


def _mark(task: str) -> str:
    return hashlib.sha256(task.encode()).hexdigest()


class SnapshotFile(Struct, frozen=True):
    """The one of a run; it is only ever replaced as a whole, and whether it can be believed is its reader's to say."""

    state: StateFolder
    run: str

    @property
    def path(self) -> Path:
        """The path of the file."""
        return self._folder.path / self.run

    @property
    def _folder(self) -> StateFolder:
        return self.state.below("cache")

    def read(self) -> memoryview:
        """Return the content, which stays in the file until it is read; nothing if it is unreadable."""
        with suppress(*_UNUSABLE), self._folder.opened() as folder, os.fdopen(folder.open(self.run), "rb") as file:
            return memoryview(mmap(file.fileno(), 0, access=ACCESS_READ))
        return memoryview(b"")

    def write(self, content: Iterable[bytes | memoryview]) -> None:
        """Replace it, if the folder allows: the disk may be full, or the repository somebody else's."""
        with suppress(*_UNUSABLE), self._folder.opened(make=True) as folder:
            folder.replace(self.run, content)

    def forget(self) -> None:
        """Remove it, and its folder with the last one."""
        with suppress(*_UNUSABLE):
            with self._folder.opened() as folder:
                folder.remove(self.run)
            with self.state.opened() as folder:
                folder.remove_folder("cache")


_UNUSABLE = (OSError, ValueError, RepositoryError)  # nothing is lost without a snapshot
MAX_CONTACT_BYTES = 1 << 20


class Contact(Struct, frozen=True):
    """The state of a run's exchange with a server; it can be deleted."""

    remote: str  # named without a password
    prefix: str = ""  # where it takes our refs; empty until known
    met: float = 0.0  # when all was exchanged last, in seconds since the epoch; 0 for never
    failing: float = 0.0  # since when it fails
    tries: Whole = 0
    why: str = ""
    notes: tuple[str, ...] = ()  # what was left out last


def contact_folder(state: StateFolder) -> StateFolder:
    """Return the folder of notes on servers: RUN.json and RUN.lock."""
    return state.below("remotes")


def read_contact(state: StateFolder, run: str) -> Contact | None:
    """Return the state of a run's exchange with its server; None if there is no server or no note."""
    try:
        with contact_folder(state).opened() as folder:
            found = msgspec.json.decode(folder.read(f"{run}.json", MAX_CONTACT_BYTES), type=Contact)
    except (OSError, ValueError, RecursionError, msgspec.DecodeError):
        return None
    return found if all(0 <= when <= MAX_TIME for when in (found.met, found.failing)) else None


def note_contact(state: StateFolder, run: str, contact: Contact) -> None:
    """Note how a run stands; a full disk is no error, as the note is for people to read."""
    with suppress(OSError), contact_folder(state).opened(make=True) as folder:
        folder.replace(f"{run}.json", [msgspec.json.encode(contact)])
