"""`evogit run --detach`: the engine goes on in a session of its own, which no terminal ends."""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType

from rich.text import Text

from evogit.cli.locate_run import typed
from evogit.cli.terminal import Terminal
from evogit.cli.text import escape
from evogit.history.context import StoredRun
from evogit.repository import Repository
from evogit.review import SCHEMA

MAX_READ_BYTES = 1 << 20
LOOK_EVERY_S = 0.1


@dataclass(slots=True)
class BackgroundProcess:
    """The process that continues, which reports to the waiting one when the run has begun; `terminal` is the log."""

    terminal: Terminal
    _telling: int

    def take(self, run: StoredRun) -> None:
        """Report once that the run has begun: its seed is evaluated, or was before."""
        seed = run.history.seed
        if self._telling >= 0 and seed and run.history.judged(seed):
            with suppress(OSError):  # nobody waits any more
                os.write(self._telling, b"!")
            os.close(self._telling)
            self._telling = -1


def detach(terminal: Terminal, repository: Repository, run: str) -> BackgroundProcess:
    """Go on in a session of its own, which is where this returns.

    The process that was called says what is said until the run has begun, then where it can be found, and ends; or with
    the exit code of a run that failed to begin. Until then Ctrl-C reaches the run. Raise OSError if the log cannot be
    written; SystemExit if in the process that was called.
    """
    writing = repository.open_log(run)
    beginning = os.fstat(writing).st_size
    hearing, telling = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    if child := os.fork():
        os.close(telling)
        os.close(writing)
        reading = repository.open_log(run, reading=True)
        sys.exit(_await(terminal, Waiting(child, hearing, reading, beginning), repository, run))
    os.setsid()
    signal.signal(signal.SIGHUP, lambda *_: None)  # ignored by the run, and not by the programs that it starts
    os.close(hearing)
    nothing = os.open(os.devnull, os.O_RDONLY)  # nothing of the terminal is left
    for source, target in ((nothing, 0), (writing, 1), (writing, 2)):
        os.dup2(source, target)
    os.close(nothing)
    os.close(writing)
    quiet = Terminal("never", json=False)
    quiet.note(f"{time.strftime('%Y-%m-%d %H:%M:%S')}  {run} in the background, as process {os.getpid()}")
    return BackgroundProcess(quiet, telling)


@dataclass(slots=True)
class Waiting:
    """A run that begins in a `child`: its pipe, its log from `at` on, and whether a signal was passed on."""

    child: int
    hearing: int
    log: int
    at: int
    stopping: bool = False

    def until_begun(self) -> bool:
        """Print the log until the run has begun, or else ended. Return whether it has begun."""
        heard: list[int] = []
        while not heard:
            heard, _, _ = select.select([self.hearing], [], [], LOOK_EVERY_S)
            self.print_log()
        return bool(os.read(self.hearing, 1))

    def print_log(self) -> None:
        """Print what is new in the log."""
        while news := os.pread(self.log, MAX_READ_BYTES, self.at):
            self.at += len(news)
            sys.stderr.write(news.decode(errors="backslashreplace"))
        sys.stderr.flush()

    def pass_on(self, number: int, frame: FrameType | None) -> None:
        """Let the run have a signal that was meant for it."""
        self.stopping = True
        os.kill(self.child, number)

    def exit_code(self) -> int:
        """That of the ended child, as shells tell it."""
        _, status = os.waitpid(self.child, 0)
        self.print_log()
        code = os.waitstatus_to_exitcode(status)
        return code if code >= 0 else 128 - code


def _await(terminal: Terminal, waiting: Waiting, repository: Repository, run: str) -> int:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, waiting.pass_on)
    if not waiting.until_begun() or waiting.stopping:
        return waiting.exit_code()
    if terminal.json:
        where = {"repository": str(repository.path), "log": str(repository.log_file(run))}
        terminal.data({"schema": SCHEMA, "run": run, "pid": waiting.child, **where})
        return 0
    name = f" --name {run}" if len(repository.runs()) > 1 else ""
    look, state, stop = (typed(repository, each + name) for each in ("watch", "status", "stop"))
    facts = {"look": f"{look}, or {state}", "stop": stop, "log": escape(str(repository.log_file(run)))}
    goes_on = f" goes on as process {waiting.child}, also when this terminal is closed"
    terminal.print([Text.assemble((run, "bold"), goes_on)])
    terminal.print([Text.assemble((f"{what:<6}", "dim"), said) for what, said in facts.items()])
    return 0
