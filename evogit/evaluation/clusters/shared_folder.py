"""The folder in which jobs of a queue find the run: in a person's home, which nodes of a cluster share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evogit.repository.git import held_folder


@contextmanager
def shared_folder() -> Iterator[Path]:
    """A folder of this program's in the user's cache, closed to others, as a key lies there."""
    home = Path(os.environ.get("XDG_CACHE_HOME", ""))
    parent = (home if home.is_absolute() else Path.home() / ".cache") / "evogit" / "jobs"
    parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with held_folder(parent, "run-") as folder:
        yield folder
