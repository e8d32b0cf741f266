"""The provider `none`: no isolation at all, only for code that you would run with your own hands."""

from __future__ import annotations

import logging
import subprocess
import sys
import tempfile
from pathlib import Path

from evogit.content import content
from evogit.sandbox.interpreter import choose, environment, prepare
from evogit.sandbox.pool import Pool, Start
from evogit.sandbox.process import JailProcess

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
        self._pool = Pool(self._spawn, sessions=1)
        self.open, self.close = self._pool.open, self._pool.close

    def image(self) -> str:
        """A digest of what programs find: interpreter, libraries, supervisor."""
        return f"none:{self._python.digest[:32]}"

    def _spawn(self, start: Start) -> JailProcess:
        box = Path(tempfile.mkdtemp(prefix="evogit-none-"))
        command = [str(self._python.path), "-s", "-S", "-B", str(self._folder / "jail_main.py"), "plain", str(box)]
        return JailProcess(command, environment=environment(self._python.path, str(box)), cleanup=lambda: _remove(box))


def _remove(folder: Path) -> None:
    """Remove a folder whatever is in it: `rm` neither follows links nor recurses on the stack."""
    subprocess.run(["chmod", "-R", "u+rwx", str(folder)], stderr=subprocess.DEVNULL, check=False)
    subprocess.run(["rm", "-rf", "--", str(folder)], stderr=sys.stderr, check=False)
