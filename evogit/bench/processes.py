"""Worker processes of ours: they never see what a terminal sends, and they do not outlive their parent."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from multiprocessing import resource_tracker

SAFE_PATH = "PYTHONSAFEPATH"

HELD = frozenset({signal.SIGINT, signal.SIGHUP})
"""What a terminal sends to all its processes: Ctrl-C and hanging up."""


@contextlib.contextmanager
def signals_held_back() -> Iterator[None]:
    """Processes started meanwhile never see what a terminal sends: Ctrl-C and hanging up are the parent's.

    Nor do they import from the current folder, as `-P` has it: multiprocessing writes their command lines itself.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, HELD)
    safe = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"
    resource_tracker.ensure_running()  # a process too, and starting it lets SIGINT in again
    signal.pthread_sigmask(signal.SIG_BLOCK, HELD)
    try:
        yield
    finally:
        os.environ.pop(SAFE_PATH)
        os.environ.update({} if safe is None else {SAFE_PATH: safe})
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_with_parent() -> None:
    """In a new worker: end when the parent does, even if it is killed."""
    threading.Thread(target=_await_parent, daemon=True).start()


def _await_parent() -> None:
    if parent := multiprocessing.parent_process():
        parent.join()
        os._exit(0)
