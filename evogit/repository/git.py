"""The git command for what libgit2 does worse: merging and packing. Never with a person's settings."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evogit.core import RepositoryError

USAGE = 129
"""Exit code of a git that does not know the command or option."""

MEMORY = Path("/dev/shm")
"""Where Linux keeps files in memory: what lives for a millisecond would cost twenty on a busy disk."""

MISSING = "expected the git command (2.38 or newer) on the PATH; install git"


@dataclass(frozen=True, slots=True)
class Output:
    """How a git command ended."""

    code: int
    stdout: bytes
    stderr: str


async def git(git_dir: Path, *arguments: str) -> Output:
    """Run git on `git_dir` beside the loop, as it takes long.

    Raises:
        RepositoryError: when git is missing or fails.
    """
    import asyncio  # which takes a while to load, and reading needs none of it

    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(
            "git",
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            env=environment(git_dir),
            start_new_session=True,
        )
    except FileNotFoundError as error:
        raise RepositoryError(MISSING) from error
    stdout, stderr = await process.communicate()
    return _checked(arguments[0], process.returncode, stdout, stderr, (0,))


def run_git(
    git_dir: Path,
    *arguments: str,
    objects: Path | None = None,
    elsewhere: Path | None = None,
    stdin: bytes = b"",
    pass_fds: Sequence[int] = (),
    ok: Sequence[int] = (0,),
) -> Output:
    """Run git on `git_dir` and wait; its objects optionally in another folder, some more of them `elsewhere`.

    Raises:
        RepositoryError: when git is missing or exits with a code that is not in `ok`.
    """
    try:
        done = subprocess.run(
            ["git", *arguments],
            input=stdin,
            capture_output=True,
            env=environment(git_dir, objects, elsewhere),
            pass_fds=pass_fds,
            start_new_session=True,
            check=False,
        )
    except FileNotFoundError as error:
        raise RepositoryError(MISSING) from error
    return _checked(arguments[0], done.returncode, done.stdout, done.stderr, ok)


def passing() -> Path | None:
    """Where what lives for a moment is kept: in memory; None, where that cannot be had, for the system's own place."""
    return MEMORY if os.access(MEMORY, os.W_OK | os.X_OK) else None


def environment(git_dir: Path, objects: Path | None = None, elsewhere: Path | None = None) -> dict[str, str]:
    """What git is told of its surroundings: nothing of the person's."""
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "LC_ALL": "C",
        "GIT_DIR": str(git_dir),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_TERMINAL_PROMPT": "0",
    }
    if objects is not None:
        environment["GIT_OBJECT_DIRECTORY"] = str(objects)
    if elsewhere is not None:
        environment["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = _quoted(str(elsewhere))
    return environment


def _checked(command: str, code: int | None, stdout: bytes, stderr: bytes, ok: Sequence[int]) -> Output:
    """How it ended, if that was one of the ways that are `ok`."""
    output = Output(code or 0, stdout, stderr.decode(errors="replace").strip())
    if output.code not in ok:
        old = "; expected Git 2.38 or newer" * (output.code == USAGE)
        raise RepositoryError(f"git {command} failed with exit code {output.code}: {output.stderr[:500]}{old}")
    return output


def _quoted(folder: str) -> str:
    """A folder as an entry of a list of them: in C quotes, since a plain one must not hold a colon (git(1))."""
    escaped = folder.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
