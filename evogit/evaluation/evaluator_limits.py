"""What the evaluator itself may use on one candidate, whose replies may be made to hold it."""

from __future__ import annotations

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

MEMORY = 4 << 30
"""Bytes that an evaluation may take beside what its evaluator had before; more is a `MemoryError`."""
PATIENCE = 6
"""Times `sandbox.total` that an evaluation may last: candidate, seed, lives of each of them, and the evaluator."""
LATE = {signal.SIGPROF: "CPU", signal.SIGALRM: "wall clock"}
"""The signals by which the kernel ends an evaluator that takes too long, whatever it does, and too long of what."""


@contextmanager
def within_own_limits(total: float) -> Iterator[None]:
    """The context of one evaluation: `total` seconds of this process's CPU, and that much memory.

    Handlers of Python would wait for a call into C to end, which is where sets are made: so the kernel ends the
    process, and the engine tells why.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    with suppress(ValueError, OSError):  # a lower limit holds already
        resource.setrlimit(resource.RLIMIT_DATA, (_held() + MEMORY, hard))
    signal.setitimer(signal.ITIMER_PROF, total)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE * total)
    try:
        yield
    finally:
        for timer in (signal.ITIMER_PROF, signal.ITIMER_REAL):
            signal.setitimer(timer, 0)
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _held() -> int:
    """Bytes of data that this process has mapped."""
    return int(Path("/proc/self/status").read_text().partition("\nVmData:")[2].split()[0]) << 10


def story(number: int, total: float) -> str:
    """What a signal that ended an evaluator says of the candidate: a sentence; empty when it was none of these."""
    if number not in LATE:
        return ""
    most = total if number == signal.SIGPROF else PATIENCE * total
    return f"judging what it returned took more than {most:g} s of {LATE[signal.Signals(number)]} (sandbox.total)"
