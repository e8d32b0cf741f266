"""Folders of processes that may be killed, and the packing of loose objects."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import threading
from pathlib import Path

from evogit.core import RepositoryError
from evogit.repository import Packer
from evogit.repository.git import held_folder


class Store:
    """Counts how often it is packed, and whether two do so at once."""

    def __init__(self) -> None:
        self.packed = 0
        self.at_once = 0
        self._now = 0

    async def pack(self) -> None:
        self._now += 1
        self.at_once = max(self.at_once, self._now)
        await asyncio.sleep(0.02)
        self._now -= 1
        self.packed += 1


async def test_a_run_of_cheap_candidates_is_packed_once_and_a_long_one_again_never_twice_at_once() -> None:
    store = Store()
    packer = Packer(store.pack, 1500)
    for candidates in range(1500, 9000, 3):  # several agents: no count can be relied on to be seen
        packer.grown(candidates)
    await packer.finish(9000)
    assert (store.packed, store.at_once) == (1, 1)
    store = Store()
    packer = Packer(store.pack, 0)
    for candidates in range(0, 45_000, 150):
        packer.grown(candidates)
        await asyncio.sleep(0.001)
    await packer.finish(45_000)
    assert store.packed >= 4
    assert store.at_once == 1


async def test_a_short_run_is_not_packed_and_a_failure_is_no_error_of_the_run() -> None:
    store = Store()
    await Packer(store.pack, 0).finish(1999)
    assert store.packed == 0

    async def fails() -> None:
        raise RepositoryError("git repack failed")

    await Packer(fails, 0).finish(2000)


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
