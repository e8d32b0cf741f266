"""A disposable file beside the refs, for what was made of a run's journals."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from mmap import ACCESS_READ, mmap
from pathlib import Path

from msgspec import Struct

from evogit.core import RepositoryError
from evogit.repository.state_folder import StateFolder


class SnapshotFile(Struct, frozen=True):
    """The one of a run; it is only ever replaced as a whole, and whether it can be believed is its reader's to say."""

    state: StateFolder
    run: str

    @property
    def path(self) -> Path:
        """Where it lies."""
        return self._folder.path / self.run

    @property
    def _folder(self) -> StateFolder:
        return self.state.below("cache")

    def read(self) -> memoryview:
        """What is there, which stays in the file until somebody looks at it; nothing where that cannot be read."""
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


_UNUSABLE = (OSError, ValueError, RepositoryError)
"""Nothing is lost without a snapshot: an empty file (ValueError), or a link in its place, is left alone."""
