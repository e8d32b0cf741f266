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
    with contextlib.suppress(OSError), _locked(folder, fcntl.LOCK_EX | fcntl.LOCK_NB):
        if time.time() - folder.stat().st_mtime > OLD:  # else it may be about to be held
            shutil.rmtree(folder)


@contextlib.contextmanager
def _locked(folder: Path, how: int) -> Iterator[None]:
    """Hold a folder, which ends with this process however that ends.

    Raises:
        OSError: another process holds it and `how` is not to wait, or it is another person's.
    """
    held = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(held, how)
        yield
    finally:
        os.close(held)
