"""The provider `none`: no isolation at all, only for code that you would run with your own hands."""

from __future__ import annotations

import logging
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from evogit.content import content
from evogit.sandbox import Files, Limits, Session
from evogit.sandbox.interpreter import choose, environment, prepare
from evogit.sandbox.process import JailProcess
from evogit.sandbox.session import SupervisedSession

logger = logging.getLogger(__name__)


class Bare:
    """The provider `none`: the same supervisor and protocol, as a plain child process in a temporary folder.

    It keeps limits by sampling and cleans up after itself. It does not keep the program from reading and writing
    whatever the user can, from the network, from signalling or tracing any process of the user (the supervisor and
    the engine included), or from hiding memory and processes; disk is only seen inside the session's folder.
    """

    name = "none"

    def __init__(self) -> None:
        """Compile the supervisor, and warn.

        Raises:
            SandboxError: when the interpreter does not work.
        """
        logger.warning("sandbox none: candidates run without any isolation, with all rights of your account")
        self._folder = content("sandbox")
        self._python = prepare(*choose(privileged=False), self._folder)

    def image(self) -> str:
        """A digest of what programs find: interpreter, libraries, supervisor."""
        return f"none:{self._python.digest[:32]}"

    def open(self, files: bytes | Files, limits: Limits, preload: Sequence[str] = ()) -> Session:
        """Start a session on the tar archive `files`; `preload` names modules imported before the candidate's code.

        Raises:
            SandboxError: when the supervisor does not start.
        """
        box = Path(tempfile.mkdtemp(prefix="evogit-none-"))
        command = [str(self._python.path), "-s", "-S", "-B", str(self._folder / "jail_main.py"), str(box)]
        jail = JailProcess(command, environment=environment(self._python.path, str(box)), cleanup=lambda: _remove(box))
        return SupervisedSession(jail, files, limits, preload)


def _remove(folder: Path) -> None:
    """Remove a folder whatever is in it: `rm` neither follows links nor recurses on the stack."""
    subprocess.run(["chmod", "-R", "u+rwx", str(folder)], stderr=subprocess.DEVNULL, check=False)
    subprocess.run(["rm", "-rf", "--", str(folder)], stderr=sys.stderr, check=False)
