"""Every child process of ours is started here (tests/test_architecture.py), so that no folder takes part in it.

The current folder may be a stranger's repository. A child begins at the root of the file system unless the user typed
its command, and a child Python never imports from where it begins. Those that we wait for have a limit of time.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from math import ceil
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT, CompletedProcess, Popen, SubprocessError, TimeoutExpired
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asyncio.subprocess import Process

__all__ = ["DEVNULL", "PIPE", "STDOUT", "CompletedProcess", "Popen", "SubprocessError", "TimeoutExpired"]

ROOT = Path("/")
"""Where children begin: nothing that they look for there is a stranger's."""

QUERY_SECONDS = 20.0
"""Seconds of CPU for a program that only answers a question."""

PATIENCE = 3.0
"""Times as long as its limit of CPU that a program may take by the clock: the machine may be busy with others."""


class TooLongError(TimeoutError):
    """A program took more than its limit and was ended."""


def python(*arguments: str, program: str = sys.executable, isolated: bool = False) -> tuple[str, ...]:
    """The command line of a Python that imports nothing from its current folder.

    `isolated`: it needs the standard library alone, and ignores the environment and the user's packages, too. Not for
    what imports EvoGit, which may be installed among the latter.
    """
    return program, "-I" if isolated else "-P", *arguments


def shell(command: str) -> tuple[str, ...]:
    """The command line for a command that the user wrote in the language of the shell."""
    return "/bin/sh", "-c", command


def start(
    argv: Sequence[str], *, env: Mapping[str, str], cwd: Path | None = ROOT, session: bool = True, **options: Any
) -> Popen[bytes]:
    """Start a program with exactly this environment, by default in a session of its own, which no Ctrl-C reaches.

    `cwd` is None only for a command that the user typed, which begins where the user stands. `options` are those of
    `Popen`. Raises OSError: it cannot be started.
    """
    return Popen(list(argv), env=dict(env), cwd=cwd, start_new_session=session, **options)


async def start_beside(
    argv: Sequence[str], *, env: Mapping[str, str], cwd: Path | None = ROOT, session: bool = True, **options: Any
) -> Process:
    """The same as `start` for a loop of asyncio."""
    import asyncio  # which takes a while to load, and reading needs none of it

    return await asyncio.create_subprocess_exec(*argv, env=dict(env), cwd=cwd, start_new_session=session, **options)


@cache
def leash() -> tuple[str, ...]:
    """Return the prefix of a command with which the kernel kills it when the thread that started it ends.

    That is util-linux's `setpriv`, 1 ms a start: between fork and exec, where Python would do the same, a thread of
    ours may hold a lock for ever. Nothing where there is no such `setpriv`; the limit of CPU holds even then.
    """
    found = shutil.which("setpriv")
    command = (found or "", "--pdeathsig", "KILL", "--")
    able = found and subprocess.run([*command, "true"], capture_output=True, cwd=ROOT, timeout=10).returncode == 0
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
    seconds: float | None,
    env: Mapping[str, str],
    stdin: bytes = b"",
    pass_fds: Sequence[int] = (),
) -> CompletedProcess[bytes]:
    """Run a program and wait for its end and its output; `seconds` of CPU, and `PATIENCE` times as many by the clock.

    `seconds` is None for what takes as long as it takes, such as a download.

    Raises:
        FileNotFoundError: there is no such program.
        TooLongError: it took longer, or was killed.
    """
    if shutil.which(argv[0], path=env.get("PATH")) is None:
        raise FileNotFoundError(argv[0])
    argv, limit = list(argv), None if seconds is None else PATIENCE * seconds
    with start([*leash(), *argv], env=env, stdin=PIPE, stdout=PIPE, stderr=PIPE, pass_fds=pass_fds) as process:
        if seconds is not None:
            bound(process.pid, seconds)
        try:
            stdout, stderr = process.communicate(stdin, timeout=limit)
        except TimeoutExpired as error:
            raise TooLongError(too_long(argv[0], seconds)) from error
        finally:
            if process.returncode in (None, -signal.SIGKILL):
                end_group(process.pid)
    if process.returncode == -signal.SIGKILL:
        raise TooLongError(too_long(argv[0], seconds))
    return CompletedProcess(argv, process.returncode, stdout, stderr)


def too_long(name: str, seconds: float | None) -> str:
    """Return the message about a program that was ended."""
    if seconds is None:
        return f"{name} was killed"
    return f"{name} took more than {seconds:g} s of CPU, or {PATIENCE * seconds:g} s by the clock, and was ended"
