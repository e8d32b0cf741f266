"""Which tasks' holdouts a candidate may have seen on this machine: marks beside the refs, void once it starts anew.

What a candidate saw can stay in the machine (the page cache, names looked up), where a later one finds it.
"""

from __future__ import annotations

import hashlib
from functools import cached_property
from pathlib import Path

from evogit.core import RepositoryError

BOOT = Path("/proc/sys/kernel/random/boot_id")


class Holdouts:
    """Those of one clone."""

    def __init__(self, common: Path) -> None:
        self._folder = common / "evogit" / "holdouts"

    def show(self, task: str) -> None:
        """Remember that a candidate is shown a task's holdout from now on.

        Raises:
            RepositoryError: it cannot be remembered.
        """
        mark = self._mark(task)
        try:
            mark.parent.mkdir(parents=True, exist_ok=True)
            mark.touch()
        except OSError as error:
            raise RepositoryError(
                f"expected to be allowed to note in {mark} that a holdout was shown: {error.strerror}"
            ) from error

    def shown(self, task: str) -> bool:
        """Whether one was, since this machine was started."""
        return self._mark(task).exists()

    @cached_property
    def _marks(self) -> Path:
        """The folder for as long as this machine is up, and so this process."""
        return self._folder / (BOOT.read_text().strip() if BOOT.exists() else "unknown")

    def _mark(self, task: str) -> Path:
        return self._marks / hashlib.sha256(task.encode()).hexdigest()
