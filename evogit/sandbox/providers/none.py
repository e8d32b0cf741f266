"""The provider `none`: no isolation at all, only for code that you would run with your own hands."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from evogit.content import content
from evogit.sandbox import Environment
from evogit.sandbox.cores import exclusive_core, pinned
from evogit.sandbox.interpreter import NAMES, NAMES_OF_PYTHON, choose, environment, prepare
from evogit.sandbox.packages import lease, packages_folder
from evogit.sandbox.pool import JailProcess, Pool, WorkerStart
from evogit.sandbox.providers import Provider
from evogit.sandbox.session import Sandbox
from evogit.subprocesses import run_child

logger = logging.getLogger(__name__)

LOADER = """
import marshal, sys
del sys.path[0]
names, held = sys.argv.pop(1).split(","), int(sys.argv.pop(1))
with open(held, "rb") as codes:
    for name in names:
        module = sys.modules[name] = type(sys)(name)
        exec(marshal.load(codes), module.__dict__)
sys.modules["jail_main"].main()
"""
"""What a worker's `python3 -c` runs; the supervisor comes compiled, since each session takes a new worker."""
HEADER = 16  # bytes of a compiled file before its code


class Bare(Provider):
    """The provider `none`: the same supervisor and protocol, as a plain child process in a temporary folder.

    It keeps limits by sampling and cleans up after itself. It does not keep the program from reading and writing
    whatever the user can, from the network, from signalling or tracing any process of the user (the supervisor and
    the engine included), or from hiding memory and processes; disk is only seen inside the session's folder.
    """

    name = "none"
    title = "no sandbox"
    isolates = False
    timing: Literal["counted", "sampled"] = "sampled"

    @classmethod
    def start(cls, wanted: Environment, private: Sequence[Path] | None, *, worked: bool) -> Sandbox:
        """Return what runs programs, and hides nothing from them."""
        return cls(wanted)

    def __init__(self, wanted: Environment | None = None) -> None:
        """Compile the supervisor, and warn. Raises SandboxError when the interpreter does not work."""
        logger.warning("sandbox none: candidates run without any isolation, with all rights of your account")
        self._python = prepare(*choose(privileged=False), content("sandbox"))
        self._supervisor = b"".join(self._python.modules[name][HEADER:] for name in NAMES)
        self._packages = packages_folder(wanted or Environment(), self._python.version)
        self._lease = lease(self._packages) if self._packages else None
        self._core = exclusive_core() if wanted and wanted.exclusive else None
        self._pool = Pool(self._spawn, sessions=1)
        self.open = self._pool.open
        self.close = self._pool.close

    def image(self) -> str:
        """A digest of what programs find: interpreter, libraries, supervisor."""
        return f"{self.name}:{self._python.digest[:32]}" + (f"+{self._packages.name[:32]}" if self._packages else "")

    def _spawn(self, start: WorkerStart) -> JailProcess:
        box = Path(tempfile.mkdtemp(prefix="evogit-none-"))
        programs = box / "programs"
        programs.mkdir()
        for name in NAMES_OF_PYTHON:
            (programs / name).symlink_to(self._python.path)
        variables = environment(self._python.path, str(box), str(programs))
        if self._packages:
            variables["PYTHONPATH"] = str(self._packages)
        core = pinned(self._core) if self._core is not None else contextlib.nullcontext()
        with core, os.fdopen(os.memfd_create("supervisor"), "wb") as supervisor:
            supervisor.write(self._supervisor)
            supervisor.seek(0)
            held = supervisor.fileno()
            command = [str(self._python.path), "-s", "-S", "-B", "-c", LOADER, ",".join(NAMES), str(held)]
            command += ["plain", str(box)]
            return JailProcess(command, environment=variables, pass_fds=[held], cleanup=lambda: _remove(box))


def _remove(folder: Path) -> None:
    """Remove a folder whatever is in it, without following links; `rm`, which does not recurse, what Python cannot."""
    with contextlib.suppress(OSError, RecursionError):
        shutil.rmtree(folder)
        return
    env = {"PATH": os.environ.get("PATH", os.defpath)}
    remove, open_up = ["rm", "-rf", "--", str(folder)], ["chmod", "-R", "u+rwx", str(folder)]
    for command in (remove, open_up, remove):  # some folders cannot be written to
        done = run_child(command, seconds=None, env=env)
        if command is remove and done.returncode == 0:
            return
    logger.warning("cannot remove %s", folder)
