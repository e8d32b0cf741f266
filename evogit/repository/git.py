"""The git command for what libgit2 does worse: merging and packing. Never with a person's settings."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evogit.core import RepositoryError

USAGE = 129
"""Exit code of a git that does not know the command or option."""


@dataclass(frozen=True, slots=True)
class Output:
    """How a git command ended."""

    code: int
    stdout: bytes
    stderr: str


async def git(
    git_dir: Path,
    *arguments: str,
    objects: Path | None = None,
    elsewhere: Path | None = None,
    pass_fds: Sequence[int] = (),
    ok: Sequence[int] = (0,),
) -> Output:
    """Run git on `git_dir`, its objects optionally in another folder, some more of them `elsewhere`.

    Raises:
        RepositoryError: when git is missing or exits with a code that is not in `ok`.
    """
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
    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(
            "git",
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            env=environment,
            pass_fds=pass_fds,
            start_new_session=True,
        )
    except FileNotFoundError as error:
        raise RepositoryError("expected the git command (2.38 or newer) on the PATH; install git") from error
    stdout, stderr = await process.communicate()
    output = Output(process.returncode or 0, stdout, stderr.decode(errors="replace").strip())
    if output.code not in ok:
        old = "; expected Git 2.38 or newer" * (output.code == USAGE)
        raise RepositoryError(f"git {arguments[0]} failed with exit code {output.code}: {output.stderr[:500]}{old}")
    return output


def _quoted(folder: str) -> str:
    """A folder as an entry of a list of them: in C quotes, since a plain one must not hold a colon (git(1))."""
    escaped = folder.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
