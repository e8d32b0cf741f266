"""The folder for what can be made again: downloaded packages, compiled code, and locks so that it is made once."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from evogit.core import SandboxError

Say = Callable[[str], None]  # takes sentences about what goes on, for a person who waits


def cache_folder() -> Path:
    """Return EvoGit's cache folder, closed to sandbox users. Raises SandboxError if another user may write to it."""
    home = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if home.is_absolute():
        folder = home / "evogit"
    else:
        folder = Path("/var/cache/evogit") if os.geteuid() == 0 else Path.home() / ".cache" / "evogit"
    with suppress(OSError):
        for about in (folder.lstat(), folder.stat()):
            open_to_all = about.st_mode & 0o002 and not stat.S_ISLNK(about.st_mode)
            if about.st_uid not in (0, os.geteuid()) or open_to_all:
                raise SandboxError(
                    f"expected {folder} to be yours alone, as programs are started from it, found it "
                    f"{'writable for everybody' if open_to_all else f'to belong to the user {about.st_uid}'}; "
                    "remove it, or name a folder of yours with XDG_CACHE_HOME"
                )
    return folder


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


def recall(name: str, key: str) -> dict[str, Any] | None:
    """What was remembered under a name, if it was for this key, and none of the `folders` in it has changed since."""
    try:
        kept = json.loads(_file(name).read_bytes())
        found: dict[str, Any] = kept["found"]
        unchanged = kept["key"] == key and all(
            Path(folder).stat().st_mtime_ns == time for folder, time in found["folders"].items()
        )
    except (OSError, RuntimeError, ValueError, LookupError, TypeError, AttributeError):
        return None  # never made, cut off, written by another version, or there is no home
    return found if unchanged else None


def remember(name: str, key: str, found: dict[str, Any]) -> dict[str, Any]:
    """Keep something for `recall`, in the place of what was under the name, and give it back."""
    with suppress(OSError, RuntimeError):
        file = _file(name)
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=file.parent, delete=False) as new:
            json.dump({"key": key, "found": found}, new)
        Path(new.name).replace(file)
    return found


def _file(name: str) -> Path:
    return cache_folder() / "compiled" / f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.json"
