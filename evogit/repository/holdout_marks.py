"""Which tasks' holdouts a candidate may have seen on this machine: marks beside the refs, void once it starts anew.

What a candidate saw can stay in the machine (the page cache, names looked up), where a later one finds it.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from evogit.core import RepositoryError
from evogit.repository.state_folder import StateFolder

BOOT = Path("/proc/sys/kernel/random/boot_id")


class Holdouts:
    """Those of one clone."""

    def __init__(self, state: StateFolder) -> None:
        self._state = state.below("holdouts")

    def show(self, task: str) -> None:
        """Remember that a candidate is shown a task's holdout from now on.

        Raises:
            RepositoryError: it cannot be remembered.
        """
        try:
            with self._marks.opened(make=True) as folder:
                folder.write_once(_mark(task), b"")
        except OSError as error:
            raise RepositoryError(
                f"expected to be allowed to note in {error.filename} that a holdout was shown: {error.strerror}"
            ) from error

    def shown(self, task: str) -> bool:
        """Whether one was, since this machine was started."""
        with suppress(FileNotFoundError), self._marks.opened() as folder:
            return folder.holds(_mark(task))
        return False

    @cached_property
    def _marks(self) -> StateFolder:
        """The folder for as long as this machine is up, and so this process."""
        return self._state.below(BOOT.read_text().strip() if BOOT.exists() else "unknown")


def _mark(task: str) -> str:
    return hashlib.sha256(task.encode()).hexdigest()
