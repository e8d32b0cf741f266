"""A disposable file beside the refs, for what was made of a run's journals."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from mmap import ACCESS_READ, mmap
from pathlib import Path

from msgspec import Struct


class SnapshotFile(Struct, frozen=True):
    """The one of a run; it is only ever replaced as a whole, and whether it can be believed is its reader's to say."""

    common: Path
    run: str

    @property
    def path(self) -> Path:
        """Where it lies."""
        return self.common / "evogit" / "cache" / self.run

    def read(self) -> memoryview:
        """What is there, which stays in the file until somebody looks at it; nothing where that cannot be read."""
        try:
            with self.path.open("rb") as file:
                return memoryview(mmap(file.fileno(), 0, access=ACCESS_READ))
        except (OSError, ValueError):  # the latter of an empty file
            return memoryview(b"")

    def write(self, content: Iterable[bytes | memoryview]) -> None:
        """Replace it, if the folder allows: the disk may be full, or the repository somebody else's."""
        passing = self.path.with_name(f"{self.run}~{os.getpid()}")  # which is no run's name
        with suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            try:
                with passing.open("wb") as file:
                    file.writelines(content)
                passing.replace(self.path)
            finally:
                passing.unlink(missing_ok=True)

    def forget(self) -> None:
        """Remove it, and its folder with the last one."""
        with suppress(OSError):
            self.path.unlink(missing_ok=True)
            self.path.parent.rmdir()
