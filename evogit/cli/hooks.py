"""The end of `evogit run`: its exit code, and the command of `--on-end`."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType

from rich.text import Text

from evogit.cli.terminal import Terminal
from evogit.cli.text import escape
from evogit.core import EvoGitError
from evogit.repository import Repository
from evogit.review.run_list import RunList
from evogit.subprocesses import DEVNULL, TimeoutExpired, shell, start

INTERRUPTED, NO_GAIN = 130, 5
PATIENCE_S = 30.0
MAX_OUTPUT_BYTES = 300


class RunEnd:
    """The rest of a command that runs an engine; `reason` is why the engine stopped, once it did in good order.

    `secrets` do not reach the shell command.
    """

    def __init__(
        self, command: str | None, repository: Repository, run: str, terminal: Terminal, secrets: Sequence[str]
    ) -> None:
        self.reason = ""
        self._command = command
        self._repository = repository
        self._run = run
        self._terminal = terminal
        self._secrets = secrets

    def __enter__(self) -> RunEnd:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        code = exit_code(error)
        with suppress(OSError):  # reported when the run began
            RunList.of_person(os.environ).end(self._repository, self._run, code)
        if self._command:
            self._start(self._command, code, self.reason or ("interrupted" if code == INTERRUPTED else "error"))

    def _start(self, command: str, code: int, reason: str) -> None:
        environment = {name: value for name, value in os.environ.items() if value not in self._secrets}
        environment |= {"EVOGIT_REPOSITORY": str(self._repository.path), "EVOGIT_RUN": self._run}
        environment |= {"EVOGIT_REASON": reason, "EVOGIT_EXIT": str(code)}
        with tempfile.TemporaryFile() as output:
            process = start(shell(command), env=environment, cwd=None, stdin=DEVNULL, stdout=output, stderr=output)
            try:
                ended = process.wait(timeout=PATIENCE_S)
            except TimeoutExpired:
                self._terminal.note(f"--on-end is still running after {PATIENCE_S:g} s", "yellow")
                return
            if ended:
                output.seek(max(0, os.fstat(output.fileno()).st_size - MAX_OUTPUT_BYTES))
                last = output.read().decode(errors="replace").strip().splitlines()[-1:]
                self._terminal.note(Text(": ".join([f"--on-end ended with {ended}", *map(escape, last)]), "yellow"))


def exit_code(error: BaseException | None) -> int:
    """Return the exit code of a command that raises this, or nothing."""
    match error:
        case None | BrokenPipeError():  # the reader has seen enough
            return 0
        case SystemExit():
            return error.code if isinstance(error.code, int) else int(error.code is not None)
        case KeyboardInterrupt():
            return INTERRUPTED
        case EvoGitError():
            return error.exit_code
        case _:
            return 1
