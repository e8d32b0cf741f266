"""The person's own git, with their settings, credentials and ways through the network, for servers that they use."""

from __future__ import annotations

import asyncio
import os
import re
import resource
import shutil
import signal
from contextlib import suppress
from pathlib import Path

from evogit.core import RepositoryError
from evogit.repository.git import LONGEST_WAIT, MISSING, Output
from evogit.repository.subprocesses import end_group, leash, let_go, run_child
from evogit.text import one_line

MOST_TOLD = 1 << 20
"""Bytes of what git prints that are read: a server may say anything, for ever."""

END_IN = 3.0
"""Seconds that git has to remove what it was about to write, once it is asked to end."""

LONGEST_WHY = 200
"""Characters of what a server says that are passed on."""

SETTINGS = ("core.hooksPath=/dev/null", "gc.auto=0", "maintenance.auto=false", "push.recurseSubmodules=no")
"""What of a person's settings must not take part: hooks are for their branches, and packing is ours to do."""


class RemoteError(RepositoryError):
    """A server was not reached, or refused something."""


async def person_git(git_dir: Path, folder: Path, *arguments: str, seconds: float | None, asks: bool = False) -> Output:
    """Run git in a folder beside the loop, for so many seconds; it ends with the task that waits for it.

    What it writes into one file is at most half of what the disk has left. `asks`: somebody is there to be asked.

    Raises:
        RemoteError: it took too long.
        RepositoryError: git is missing.
    """
    if shutil.which("git") is None:
        raise RepositoryError(MISSING)
    options = [word for setting in SETTINGS for word in ("-c", setting)]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *(*leash(), "git", *options, *arguments),
        stdin=None if asks else asyncio.subprocess.DEVNULL,
        stdout=pipe,
        stderr=pipe,
        cwd=folder,
        env=_environment(git_dir, asks=asks),
        start_new_session=not asks,  # with a terminal of its own nobody is asked
    )
    try:
        _bound(process.pid, git_dir)
        async with asyncio.timeout(seconds):
            stdout, stderr = await asyncio.gather(_read(process.stdout), _read(process.stderr))
            code = await process.wait()
    except TimeoutError as error:
        raise RemoteError(f"git {arguments[0]} was not done within {seconds:g} s") from error
    finally:
        if process.returncode is None:
            await _end(process, alone=not asks)
        let_go(process)
    return Output(code, stdout, stderr.decode(errors="replace").strip())


def person_config(git_dir: Path, pattern: str) -> dict[str, str | None]:
    """Settings whose names fit a pattern, as the person's git reads them; of several the last. None: no value given.

    Raises:
        RepositoryError: git is missing, or cannot read them.
    """
    command = ["git", "config", "--null", "--get-regexp", pattern]
    try:
        done = run_child(command, seconds=LONGEST_WAIT, env=_environment(git_dir, asks=False))
    except FileNotFoundError as error:
        raise RepositoryError(MISSING) from error
    if done.returncode > 1:  # 1: there are none
        raise RepositoryError(f"reading the settings of Git: {why(done.stderr.decode(errors='replace'))}")
    pairs = (entry.partition("\n") for entry in done.stdout.decode(errors="replace").split("\0") if entry)
    return {name: value if equals else None for name, equals, value in pairs}


def _environment(git_dir: Path, *, asks: bool) -> dict[str, str]:
    """The person's surroundings, but for what would lead git to another repository."""
    elsewhere = ("GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR", "GIT_NAMESPACE")
    environment = {name: value for name, value in os.environ.items() if name not in elsewhere}
    quiet = {} if asks else {"GIT_TERMINAL_PROMPT": "0", "SSH_ASKPASS_REQUIRE": "never"}
    return {**environment, **quiet, "GIT_DIR": str(git_dir), "LC_ALL": "C"}


def _bound(process: int, folder: Path) -> None:
    """Let no file that it writes fill the disk."""
    most = shutil.disk_usage(folder).free // 2
    with suppress(ProcessLookupError, PermissionError, ValueError):
        resource.prlimit(process, resource.RLIMIT_FSIZE, (most, most))


async def _read(stream: asyncio.StreamReader | None) -> bytes:
    """What is printed, up to its limit; the rest is read and forgotten."""
    assert stream
    found = bytearray()
    while part := await stream.read(1 << 16):
        found += part[: MOST_TOLD - len(found)]
    return bytes(found)


async def _end(process: asyncio.subprocess.Process, *, alone: bool) -> None:
    """Ask it to end, so that it removes its locks and what it was writing, then end it."""
    with suppress(ProcessLookupError, PermissionError):
        if alone:
            os.killpg(process.pid, signal.SIGTERM)
        else:
            process.terminate()
    with suppress(TimeoutError):
        async with asyncio.timeout(END_IN):
            await process.wait()
    if alone:
        end_group(process.pid)  # what it started, too
    if process.returncode is None:
        process.kill()
        await process.wait()


def why(said: str) -> str:
    """What git says went wrong, in a line that may be shown: without passwords of addresses, and harmless."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    telling = [line for line in lines if line.startswith(("fatal:", "error:", "ssh:", "remote: ERROR"))]
    line = (telling or lines or ["git said nothing"])[0]
    return one_line(re.sub(r"://[^/@\s]+@", "://", line), LONGEST_WHY)
