"""Waiting, and costs compared with costs: no test hangs on how fast this machine is, or on what else it does."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Callable

PATIENCE = 200.0
"""Seconds after which what did not happen will not: less than pytest's own `faulthandler_timeout`."""


def wait_until(happened: Callable[[], object], what: str = "what was waited for", *, every: float = 0.02) -> None:
    """Return when it happened; `every`: seconds between two looks, more where a look is dear.

    Raises:
        AssertionError: it did not.
    """
    until = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < until, f"{what} did not happen"
        time.sleep(every)


async def until(happened: Callable[[], object], what: str = "what was waited for") -> None:
    """`wait_until`, beside what else the event loop has to do."""
    async with asyncio.timeout(PATIENCE):
        while not happened():
            await asyncio.sleep(0.01)


def cpu_seconds(work: Callable[[], object], times: int = 3) -> float:
    """What a call costs this process: the least of several, as a neighbour can only make it dearer."""
    costs = []
    for _ in range(times):
        began = time.process_time()
        work()
        costs.append(time.process_time() - began)
    return min(costs)


def assert_grows_linearly(work: Callable[[int], object], size: int, times: int = 16) -> None:
    """Check that `times` the size costs about `times` as much, where its square would cost `times` more again."""
    small = cpu_seconds(lambda: work(size))
    limit, large = 6 * times * max(small, 0.0002), cpu_seconds(lambda: work(times * size), times=1)
    if large >= limit:  # once more, as a neighbour can have made it dearer
        large = cpu_seconds(lambda: work(times * size), times=1)
    assert large < limit, f"{size}: {small:.4f} s; {times} times that: {large:.4f} s"


def stop_this_process(seconds: float) -> None:
    """Have another process stop this one for a while, so that no thread of it runs, as when a machine sleeps."""
    with subprocess.Popen(["sh", "-c", f"kill -STOP {os.getpid()}; sleep {seconds}; kill -CONT {os.getpid()}"]):
        time.sleep(0.05)
