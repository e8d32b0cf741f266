"""The hooks of `evogit run`: a command for each new best, one for the end, and the exit code."""

from __future__ import annotations

import asyncio
import functools
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import IO, Any

import click
from msgspec import Struct
from rich.text import Text

from evogit.cli.terminal import Terminal
from evogit.cli.text import escape
from evogit.cli.watch import Watch
from evogit.core import Entry, EvoGitError
from evogit.history import History
from evogit.history.standing import compare
from evogit.repository import Repository
from evogit.review.run_list import RunList
from evogit.subprocesses import DEVNULL, TimeoutExpired, shell, start, start_beside

NO_GAIN = 5
"""Exit code of a run that ended without an improvement, where that was asked for."""

PATIENCE = 30.0
"""Seconds that a run which is over waits for the command of its last best."""

TAIL = 300
"""Bytes of a failed command's output that are told."""


class Hooks(Struct, frozen=True, kw_only=True):
    """The requests of `--on-best`, `--on-end` and `--exit-code`."""

    on_best: str | None = None
    on_end: str | None = None
    exit_code: bool = False

    def watches(self, repository: Repository, terminal: Terminal, secrets: Sequence[str]) -> list[Watch]:
        """Return the observers for one run in this repository; `secrets` do not reach the commands."""
        environment = command_environment(repository, secrets)
        return [OnBest(self.on_best, environment, terminal)] if self.on_best else []

    def end(self, history: History) -> None:
        """Exit with 5 if that was asked for and nothing is better than the seed."""
        improved = history.best and history.seed and history.surely_fitter(history.best, history.seed)
        if self.exit_code and not improved:
            sys.exit(NO_GAIN)


NO_HOOKS = Hooks()


def command_environment(repository: Repository, secrets: Sequence[str]) -> dict[str, str]:
    """What a person's commands find in their environment: all but secrets, and where the run is."""
    environment = {name: value for name, value in os.environ.items() if value not in secrets}
    return {**environment, "EVOGIT_REPOSITORY": str(repository.path)}


def complaint(option: str, code: int, output: IO[bytes]) -> str:
    """That the command of an option failed, and the last line that it said."""
    output.seek(max(0, os.fstat(output.fileno()).st_size - TAIL))
    said = output.read().decode(errors="replace").strip().splitlines()
    return f"{option} ended with {code}{f': {escape(said[-1])}' if said else ''}"


def with_hooks(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command `--on-best`, `--on-end` and `--exit-code`, as `hooks`."""

    @click.option("--on-best", metavar="CMD", help="Run this shell command whenever another candidate is the best.")
    @click.option("--on-end", metavar="CMD", help="Run this shell command when the run ended, also when it failed.")
    @click.option("--exit-code", is_flag=True, help=f"Exit with {NO_GAIN} when no candidate is better than the seed.")
    @functools.wraps(command)
    def wrapped(*arguments: Any, on_best: str | None, on_end: str | None, exit_code: bool, **rest: Any) -> Any:
        return command(*arguments, hooks=Hooks(on_best=on_best, on_end=on_end, exit_code=exit_code), **rest)

    return wrapped


class OnBest(Watch):
    """Runs a person's command for the best, one at a time; of several that came meanwhile only the latest."""

    def __init__(self, command: str, environment: Mapping[str, str], terminal: Terminal) -> None:
        self._command = command
        self._environment = environment
        self._terminal = terminal
        self._history: History
        self._told: str | None = None
        self._running: asyncio.Task[None] | None = None

    def follow(self, history: History) -> None:
        """Remember the present best, which is not news."""
        self._history = history
        self._told = history.best

    def entry(self, entry: Entry) -> None:
        """Start the command if the best has changed."""
        if self._news() and (self._running is None or self._running.done()):
            self._running = asyncio.create_task(self._tell())

    async def finish(self) -> None:
        """Let the command for the last best end; one that takes too long goes on by itself."""
        if self._running is not None:
            done, _ = await asyncio.wait([self._running], timeout=PATIENCE)
            if not done:
                self._terminal.note(f"--on-best has not ended after {PATIENCE:g} s, and goes on", "yellow")

    def _news(self) -> bool:
        return self._history.best not in (None, self._history.seed, self._told)

    async def _tell(self) -> None:
        while self._news():
            history, best = self._history, self._history.best or ""
            self._told = best
            compared = compare(history.scores, best, history.seed or "")
            gain, score = repr(compared.gain) if compared else "", repr(history.fitness(best))
            about = {"EVOGIT_RUN": history.run, "EVOGIT_BEST": best, "EVOGIT_SCORE": score, "EVOGIT_GAIN": gain}
            environment = {**self._environment, **about}
            with tempfile.TemporaryFile() as output:
                words = shell(self._command)
                process = await start_beside(
                    words, env=environment, cwd=None, stdin=DEVNULL, stdout=output, stderr=output
                )
                if code := await process.wait():
                    self._terminal.note(Text(complaint("--on-best", code, output), "yellow"))


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
                self._terminal.note(f"--on-end is still running after {PATIENCE:g} s", "yellow")
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
