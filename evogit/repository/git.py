"""The git command for what libgit2 does worse: merging and packing. Never with a person's settings."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from evogit.core import RepositoryError
from evogit.subprocesses import (
    DEVNULL,
    PATIENCE,
    PIPE,
    ROOT,
    TooLongError,
    bound,
    end_group,
    leash,
    let_go,
    run_child,
    start_beside,
    too_long,
)

if TYPE_CHECKING:
    import asyncio

USAGE = 129  # exit code of a git that does not know the command or option
MEMORY = Path("/dev/shm")  # files in memory: a busy disk would cost twenty times as much
LONGEST = 600.0  # seconds of CPU for what is done beside the loop, such as packing all objects of a large run
LONGEST_WAIT = 60.0  # seconds of CPU for what somebody waits for; who reads what a candidate wrote has less

UNUSED = {"core.fsmonitor": "false", "core.hooksPath": os.devnull}
"""Settings of the repository itself by which git would run its commands: an archive may bring them along."""

MISSING = "expected the git command (2.38 or newer) on the PATH; install git"


class Output(Struct, frozen=True):
    """How a git command ended."""

    code: int
    stdout: bytes
    stderr: str


class GitTooLongError(RepositoryError):
    """Git took too long over something, and was ended."""


async def git(git_dir: Path, *arguments: str) -> Output:
    """Run git on `git_dir` beside the loop, for at most `LONGEST`. Raises RepositoryError: it is missing or fails."""
    import asyncio  # which takes a while to load, and reading needs none of it

    command = git_command(*arguments)
    process = await start_beside(command, env=environment(git_dir), stdin=DEVNULL, stdout=PIPE, stderr=PIPE)
    bound(process.pid, LONGEST)
    try:
        stdout, stderr = await asyncio.wait_for(process.communicate(), PATIENCE * LONGEST)
    except TimeoutError as error:
        raise GitTooLongError(too_long(f"git {arguments[0]}", LONGEST)) from error
    finally:
        if process.returncode is None:
            end_group(process.pid)
            await process.wait()
        let_go(process)
    return _checked(arguments[0], process.returncode, stdout, stderr, (0,))


def run_git(
    git_dir: Path,
    *arguments: str,
    objects: Path | None = None,
    elsewhere: Path | None = None,
    stdin: bytes = b"",
    pass_fds: Sequence[int] = (),
    ok: Sequence[int] = (0,),
    seconds: float = LONGEST_WAIT,
) -> Output:
    """Run git and wait. Raises GitTooLongError: too much CPU or time; RepositoryError: no git, a code not in `ok`."""
    surroundings = environment(git_dir, objects, elsewhere)
    try:
        done = run_child(["git", *arguments], seconds=seconds, env=surroundings, stdin=stdin, pass_fds=pass_fds)
    except FileNotFoundError as error:
        raise RepositoryError(MISSING) from error
    except TooLongError as error:
        raise GitTooLongError(f"git {arguments[0]}: {error}") from error
    return _checked(arguments[0], done.returncode, done.stdout, done.stderr, ok)


def git_command(*arguments: str) -> tuple[str, ...]:
    """The command line of a git that ends with us. Raises RepositoryError: git is missing."""
    if shutil.which("git") is None:
        raise RepositoryError(MISSING)
    return *leash(), "git", *arguments


def git_version() -> str:
    """The first line of `git --version`. Raises RepositoryError: git is missing or does not work."""
    return run_git(ROOT, "--version").stdout.decode(errors="replace").strip()


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
        "GIT_ALLOW_PROTOCOL": "",  # no object comes from a server that the clone names as a promisor
        "GIT_CONFIG_COUNT": str(len(UNUSED)),
    }
    for number, (name, value) in enumerate(UNUSED.items()):
        environment |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    if objects is not None:
        environment["GIT_OBJECT_DIRECTORY"] = str(objects)
    if elsewhere is not None:
        escaped = str(elsewhere).replace("\\", "\\\\").replace('"', '\\"')
        environment["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = f'"{escaped}"'  # a list, whose plain entries end at a colon
    return environment


def _checked(command: str, code: int | None, stdout: bytes, stderr: bytes, ok: Sequence[int]) -> Output:
    output = Output(code or 0, stdout, stderr.decode(errors="replace").strip())
    if output.code not in ok:
        old = "; expected Git 2.38 or newer" * (output.code == USAGE)
        raise RepositoryError(f"git {command} failed with exit code {output.code}: {output.stderr[:500]}{old}")
    return output


OLD = 60.0  # seconds after which a folder that nobody holds was left behind


@contextmanager
def held_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """A new folder for this process alone, closed to other people."""
    for left in parent.glob(f"{prefix}*"):
        with suppress(OSError), _locked(left, fcntl.LOCK_EX | fcntl.LOCK_NB) as about:
            if about.st_uid == os.geteuid() and time.time() - about.st_mtime > OLD:  # else it may be about to be held
                shutil.rmtree(left)
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    with _locked(folder, fcntl.LOCK_EX):  # waits for who only looks whether it was left behind
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _locked(folder: Path, how: int) -> Iterator[os.stat_result]:
    """Hold a folder; neither a link nor a pipe is opened. Raises OSError: it is held, another's, or not a folder."""
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(held, how)
        yield os.fstat(held)
    finally:
        os.close(held)


PACK_EVERY = 10_000
"""Candidates after which loose objects are packed while a run goes on: 360 MB. Not more often, since ext4 makes new
files up to ten times slower for minutes after thousands were removed (docs/design/engine.md)."""

PACK_AT_END = 2_000  # candidates for which a pack is worth the wait when an engine stops
MANY_PACKS = 20  # packs of a repository beyond which small ones are put together


class Packer:
    """Calls `pack` whenever a run has grown enough, one call at a time."""

    def __init__(self, pack: Callable[[], Awaitable[None]], candidates: int) -> None:
        self._pack = pack
        self._packed = candidates
        self._packing: asyncio.Task[None] | None = None

    def grown(self, candidates: int) -> None:
        """Note how many candidates there are now."""
        import asyncio  # which takes a while to load, and reading needs none of it

        idle = self._packing is None or self._packing.done()
        if idle and candidates - self._packed >= PACK_EVERY:
            self._packing = asyncio.create_task(self._quietly(candidates))

    async def finish(self, candidates: int) -> None:
        """Wait for what is being packed, and pack what is left to."""
        if self._packing is not None:
            await self._packing
        if candidates - self._packed >= PACK_AT_END:
            await self._quietly(candidates)

    async def _quietly(self, candidates: int) -> None:
        """A failure (a person's `git gc` at work, say) costs room and no data, so the next round may do better."""
        self._packed = candidates
        with suppress(RepositoryError):
            await self._pack()
