"""Folders of processes that may be killed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from pathlib import Path

from evogit.repository.git import held_folder


def test_a_folder_is_held_though_others_look_whether_it_was_left_behind(tmp_path: Path) -> None:
    over = threading.Event()

    def look() -> None:
        """What the next one who wants a folder does with each that is there, without an end."""
        while not over.is_set():
            for path in tmp_path.glob("x-*"):
                with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
                    held = os.open(path, os.O_RDONLY)
                    stack.callback(os.close, held)
                    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)

    looking = threading.Thread(target=look)
    looking.start()
    try:
        for _ in range(1000):
            with held_folder(tmp_path, "x-") as folder:
                assert folder.is_dir()
    finally:
        over.set()
        looking.join()
    assert list(tmp_path.iterdir()) == []
