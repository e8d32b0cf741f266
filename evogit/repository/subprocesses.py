"""Programs that we start and wait for: each has a limit of time, and none outlives us."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from math import ceil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncio.subprocess import Process

PATIENCE = 3.0
"""Times as long as its limit of CPU that a program may take by the clock: the machine may be busy with others."""


class TooLongError(TimeoutError):
    """A program took more than its limit and was ended."""


@cache
def leash() -> tuple[str, ...]:
    """What goes before a command, so that the kernel kills it when the thread that started it ends, however it does.

    That is util-linux's `setpriv`, 1 ms a start: between fork and exec, where Python would do the same, a thread of
    ours may hold a lock for ever. Nothing where there is no such `setpriv`; the limit of CPU holds even then.
    """
    found = shutil.which("setpriv")
    command = (found or "", "--pdeathsig", "KILL", "--")
    able = found and subprocess.run([*command, "true"], capture_output=True, timeout=10, check=False).returncode == 0
    return command if able else ()


def bound(process: int, seconds: float) -> None:
    """Limit the CPU of a program that has just begun, in seconds; the kernel keeps it, also when we are gone."""
    limit = ceil(seconds)
    with suppress(ProcessLookupError, PermissionError, ValueError):  # it is over, or has a lower limit
        resource.prlimit(process, resource.RLIMIT_CPU, (limit, limit))


def end_group(process: int) -> None:
    """Kill a program that was started in a session of its own, with all that it has started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process, signal.SIGKILL)


def let_go(process: Process) -> None:
    """Close what leads to a program that has ended: asyncio does so turns later, when its loop may be gone."""
    process._transport.close()  # type: ignore[attr-defined]


def run_child(
    argv: Sequence[str],
    *,
    seconds: float,
    env: Mapping[str, str],
    stdin: bytes = b"",
    pass_fds: Sequence[int] = (),
) -> subprocess.CompletedProcess[bytes]:
    """Run a program and wait for its end and its output; `seconds` of CPU, and `PATIENCE` times as many by the clock.

    Raises:
        FileNotFoundError: there is no such program.
        TooLongError: it took longer, or was killed.
    """
    if shutil.which(argv[0], path=env.get("PATH")) is None:
        raise FileNotFoundError(argv[0])
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*leash(), *argv],
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        env=dict(env),
        pass_fds=pass_fds,
        start_new_session=True,
    ) as process:
        bound(process.pid, seconds)
        try:
            stdout, stderr = process.communicate(stdin, timeout=PATIENCE * seconds)
        except subprocess.TimeoutExpired as error:
            raise TooLongError(too_long(argv[0], seconds)) from error
        finally:
            if process.returncode in (None, -signal.SIGKILL):
                end_group(process.pid)
    if process.returncode == -signal.SIGKILL:
        raise TooLongError(too_long(argv[0], seconds))
    return subprocess.CompletedProcess(argv, process.returncode, stdout, stderr)


def too_long(name: str, seconds: float) -> str:
    """What is said of a program that was ended."""
    return f"{name} took more than {seconds:g} s of CPU, or {PATIENCE * seconds:g} s by the clock, and was ended"
