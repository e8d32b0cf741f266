"""What happens when a run ends, however it does: the list of runs has its exit code, a person's command is run."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType

from rich.text import Text

from evogit.cli.hooks import PATIENCE, Hooks, command_environment, complaint
from evogit.cli.terminal import Terminal
from evogit.core import EvoGitError
from evogit.repository import Repository
from evogit.review.run_list import RunList
from evogit.subprocesses import DEVNULL, TimeoutExpired, shell, start


class RunEnd:
    """The rest of a command that runs an engine; `reason` is why the engine stopped, once it did in good order."""

    def __init__(
        self, hooks: Hooks, repository: Repository, run: str, terminal: Terminal, secrets: Sequence[str]
    ) -> None:
        self.reason = ""
        self._command = hooks.on_end
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
        with suppress(OSError):  # told when it began
            RunList.of_person(os.environ).end(self._repository, self._run, code)
        if self._command:
            self._tell(self._command, code, self.reason or ("interrupted" if code == INTERRUPTED else "error"))

    def _tell(self, command: str, code: int, reason: str) -> None:
        about = {"EVOGIT_RUN": self._run, "EVOGIT_REASON": reason, "EVOGIT_EXIT": str(code)}
        with tempfile.TemporaryFile() as output:
            environment = {**command_environment(self._repository, self._secrets), **about}
            process = start(shell(command), env=environment, cwd=None, stdin=DEVNULL, stdout=output, stderr=output)
            try:
                ended = process.wait(timeout=PATIENCE)
            except TimeoutExpired:
                self._terminal.note(f"--on-end has not ended after {PATIENCE:g} s, and goes on", "yellow")
                return
            if ended:
                self._terminal.note(Text(complaint("--on-end", ended, output), "yellow"))


INTERRUPTED = 130
"""Exit code of what a person broke off."""


def exit_code(error: BaseException | None) -> int:
    """The exit code that a command ends with that raises this, or nothing."""
    match error:
        case None | BrokenPipeError():  # whoever read what is said has seen enough
            return 0
        case SystemExit():
            return error.code if isinstance(error.code, int) else int(error.code is not None)
        case KeyboardInterrupt():
            return INTERRUPTED
        case EvoGitError():
            return error.exit_code
        case _:
            return 1
