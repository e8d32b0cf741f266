"""The folder for what can be made again: downloaded packages, and locks so that it is made once."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

Say = Callable[[str], None]
"""Takes sentences about what goes on, for a person who waits."""


def cache_folder() -> Path:
    """EvoGit's folder in the user's cache; root's own home is closed to the users that sandboxes run as."""
    home = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if home.is_absolute():
        return home / "evogit"
    return Path("/var/cache/evogit") if os.geteuid() == 0 else Path.home() / ".cache" / "evogit"


@contextmanager
def locked(name: str, say: Say) -> Iterator[None]:
    """Let one process of this user at a time do what `name` stands for; the others wait."""
    folder = cache_folder() / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / name).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another process that does the same")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
