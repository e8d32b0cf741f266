"""Folders of processes that may be killed: the next process of the kind removes what was left behind."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

OLD = 60.0
"""Seconds after which a folder that nobody holds was left behind."""


@contextlib.contextmanager
def held_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """A new folder for this process alone, closed to other people."""
    for left in parent.glob(f"{prefix}*"):
        _remove_left(left)
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    with _locked(folder, fcntl.LOCK_EX):  # waits for who only looks whether it was left behind
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _remove_left(folder: Path) -> None:
    with contextlib.suppress(OSError), _locked(folder, fcntl.LOCK_EX | fcntl.LOCK_NB) as about:
        if about.st_uid == os.geteuid() and time.time() - about.st_mtime > OLD:  # else it may be about to be held
            shutil.rmtree(folder)


@contextlib.contextmanager
def _locked(folder: Path, how: int) -> Iterator[os.stat_result]:
    """Hold a folder, which ends with this process however that ends; yields what is known of it.

    Anybody may have made the name in a shared folder: neither a link nor a pipe is opened.

    Raises:
        OSError: another process holds it and `how` is not to wait, it is another person's, or not a folder.
    """
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(held, how)
        yield os.fstat(held)
    finally:
        os.close(held)
