"""One core for candidates whose time is measured (`exclusive = true`), and everybody else kept off it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterator
from pathlib import Path

from evogit.core import SandboxError
from evogit.sandbox.cache import cache_folder, locked

TOPOLOGY = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"


def exclusive_core() -> int:
    """Return the last core of this process, for exclusive sessions. Raises SandboxError if it is the only one."""
    if not hasattr(os, "sched_getaffinity"):
        raise SandboxError("exclusive = true needs Linux, where a process can be pinned to a core; leave it out here")
    cores = os.sched_getaffinity(0)
    if len(cores) < 2:
        raise SandboxError(
            "exclusive = true needs a core for the candidate and another one for everything else, but this process may "
            f"use core {min(cores)} alone; give it more, or leave exclusive out of task.toml"
        )
    return max(cores)


def exclusive_cores(number: int) -> list[int]:
    """Return the last cores, one per evaluation, all but one at most. Raises SandboxError as `exclusive_core` does."""
    exclusive_core()
    cores = sorted(os.sched_getaffinity(0))
    return cores[-min(number, len(cores) - 1) :]


@contextlib.contextmanager
def kept_free(*apart: int) -> Iterator[None]:
    """Keep this process, and what it starts meanwhile, off cores, and off the other threads of the same silicon."""
    cores = os.sched_getaffinity(0)
    move_to(cores.difference(*map(_siblings, apart)) or cores - set(apart))
    try:
        yield
    finally:
        move_to(cores)


@contextlib.contextmanager
def pinned(core: int) -> Iterator[None]:
    """Let what this thread starts meanwhile, such as a worker, run on one core alone."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


@contextlib.contextmanager
def turn(core: int | None = None, *, whole: bool = True) -> Iterator[None]:
    """Wait for this user's other exclusive evaluations, or those on `core`. Raises SandboxError: no lock."""
    machine = f"exclusive.{os.uname().nodename}"  # homes may be shared between machines
    names = [*([machine] if whole else []), *([] if core is None else [f"{machine}.core{core}"])]
    with contextlib.ExitStack() as stack:
        try:
            for name in names:
                stack.enter_context(locked(name, lambda _: None))
        except OSError as error:
            raise SandboxError(
                f"exclusive evaluations wait for each other by a lock in {cache_folder()}, which cannot be taken: "
                f"{error}; name a folder of yours with XDG_CACHE_HOME"
            ) from error
        yield


def move_to(cores: Collection[int]) -> None:
    """Let all threads of this process run on these cores alone; new threads and processes inherit that."""
    for thread in os.listdir("/proc/self/task"):  # noqa: PTH208  names are all that is needed
        with contextlib.suppress(ProcessLookupError):  # it ended meanwhile
            os.sched_setaffinity(int(thread), cores)


def _siblings(core: int) -> set[int]:
    try:
        listed = Path(TOPOLOGY.format(core)).read_text()
    except OSError:
        return {core}
    ranges = [[int(end) for end in part.split("-")] for part in listed.strip().split(",")]
    return {number for first, *last in ranges for number in range(first, (last or [first])[0] + 1)}
