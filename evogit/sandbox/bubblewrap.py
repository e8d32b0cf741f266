"""Sandboxes made by bubblewrap: unprivileged namespaces, a read-only system, one writable tmpfs, a seccomp filter."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from evogit.content import PACKAGE, content
from evogit.core import EvoGitError, SandboxError
from evogit.sandbox import Files, Limits, Session
from evogit.sandbox.interpreter import Interpreter, choose, environment, prepare
from evogit.sandbox.process import JailProcess
from evogit.sandbox.seccomp import compile_filter
from evogit.sandbox.session import SupervisedSession

SLACK = 1 << 20
"""Bytes of the writable disk above the limit, as in the supervisor: a full disk shows as more than the limit."""
USERS = range(1 << 24, 1 << 30)
"""User ids for sandboxes of a root engine: above those of people, services and the usual id ranges of containers."""
DEVICES = ("/dev/null", "/dev/full", "/dev/random", "/dev/urandom")
"""There is no /dev/zero: a shared mapping of it is memory that no limit sees."""
SYSTEM = ("/etc/ld.so.cache", "/etc/alternatives")
"""What libraries below /usr need from /etc."""
ACCOUNTS = {
    "/etc/passwd": b"box:x:1000:1000::/box/home:/bin/sh\n",
    "/etc/group": b"box:x:1000:\n",
    "/etc/hosts": b"127.0.0.1 localhost\n::1 localhost\n",
}


class Bubblewrap:
    """The provider `bubblewrap`: one jail per session."""

    name = "bubblewrap"

    def __init__(self, rng: random.Random | None = None) -> None:
        """Find bubblewrap and an interpreter, and compile the supervisor and the filter for this machine.

        Args:
            rng: chooses the user ids of sandboxes when the engine is root; unpredictable by default.

        Raises:
            SandboxError: when one of them is missing.
        """
        bwrap = shutil.which("bwrap")
        if bwrap is None:
            raise SandboxError("bubblewrap is not installed (Debian: apt-get install bubblewrap)")
        self._bwrap = bwrap
        self._rng = rng or random.SystemRandom()
        self._privileged = os.geteuid() == 0
        folder = content("sandbox")
        self._filter = compile_filter(folder / "seccomp.json")
        self._python = prepare(*choose(privileged=self._privileged), folder)

    def image(self) -> str:
        """A digest of what programs find inside: interpreter, libraries, supervisor."""
        return f"bubblewrap:{self._python.digest[:32]}"

    def open(self, files: bytes | Files, limits: Limits, preload: Sequence[str] = ()) -> Session:
        """Start a session on the tar archive `files`; `preload` names modules imported before the candidate's code.

        Raises:
            SandboxError: when bubblewrap cannot do it.
        """
        data = [self._filter, *self._python.modules.values(), *ACCOUNTS.values()]
        with ExitStack() as stack:
            fds = [stack.enter_context(_file_of(piece)).fileno() for piece in data]
            jail = JailProcess(
                [self._bwrap, *_arguments(self._python, limits, fds)],
                environment={},
                user=self._rng.choice(USERS) if self._privileged else None,
                pass_fds=fds,
            )
        return SupervisedSession(jail, files, limits, preload)


def _arguments(python: Interpreter, limits: Limits, data: list[int]) -> Iterator[str]:
    """Command line of bubblewrap; `data` are the descriptors of filter, supervisor and accounts, in this order.

    Not `--die-with-parent`: bubblewrap's inner half waits forever when its outer half ends while it sets the jail up,
    so that a killed engine left a process behind in one of 30 cases. The supervisor ends when its pipe is closed.
    """
    fds = map(str, data)
    yield from ("--unshare-all", "--new-session", "--as-pid-1")
    yield from ("--uid", "1000", "--gid", "1000", "--hostname", "box", "--clearenv", "--seccomp", next(fds))
    for name, value in environment(python.path, "/box").items():
        yield from ("--setenv", name, value)
    yield from _system(python)
    for path in (*(f"/supervisor/{name}.pyc" for name in python.modules), *ACCOUNTS):
        yield from ("--ro-bind-data", next(fds), path)
    yield from ("--proc", "/proc", "--perms", "0700", "--size", str(limits.disk + SLACK), "--tmpfs", "/box")
    yield from ("--symlink", "box/tmp", "/tmp", "--remount-ro", "/", "--chdir", "/box", "--")
    yield from (str(python.path), "-s", "-S", "-B", "/supervisor/jail_main.pyc", "/box")


def _system(python: Interpreter) -> Iterator[str]:
    """The read-only part: the host's /usr, the interpreter where it is elsewhere, and a few devices."""
    for path in ("/usr", *SYSTEM, *map(str, python.folders)):
        yield from ("--ro-bind-try", path, path)
    for name in ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"):
        if Path(name).is_symlink():
            yield from ("--symlink", str(Path(name).readlink()), name)
        else:
            yield from ("--ro-bind-try", name, name)
    for hidden in hidden_folders(("/usr", *map(str, python.folders))):
        yield from ("--size", "4096", "--tmpfs", str(hidden), "--remount-ro", str(hidden))
    for device in DEVICES:
        yield from ("--dev-bind", device, device)
    yield from ("--symlink", "/box/shm", "/dev/shm", "--symlink", "/proc/self/fd", "/dev/fd")


def hidden_folders(roots: Sequence[str]) -> Iterator[Path]:
    """EvoGit's own folders below `roots`, which programs can read otherwise: evaluators are among the content."""
    for folder in (PACKAGE, *map(_content, ("tasks", "sandbox"))):
        if folder and any(folder.is_relative_to(root) for root in roots):
            yield folder


def _content(name: str) -> Path | None:
    try:
        return content(name)
    except EvoGitError:
        return None


def _file_of(data: bytes) -> IO[bytes]:
    file = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
    file.write(data)
    file.seek(0)
    return file
