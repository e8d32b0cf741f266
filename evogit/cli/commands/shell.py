"""`evogit shell`: look around in the sandbox that evaluates a candidate."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import os
import select
import shutil
import signal
import socket
import struct
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import click
from msgspec.structs import replace

from evogit.cli.lines.view import SHORT, first_line
from evogit.cli.locate_run import seed_tree, task_context
from evogit.cli.options.shared import REVISION, name_option, sandbox_option, task_option, with_repo, with_terminal
from evogit.cli.terminal import Terminal
from evogit.cli.text import escape
from evogit.config import Task
from evogit.core import Files, NotFoundError, RefusedError, SandboxError, UsageError
from evogit.evaluation.scorer import Scorer
from evogit.review import SCHEMA, resolve
from evogit.review.uncommitted import candidate_files
from evogit.sandbox.interpreter import helper
from evogit.sandbox.providers import provider
from evogit.sandbox.session import Session

BROKEN = 1  # exit code when a limit, or the end of the sandbox, ended the command
DAY = 86400.0  # seconds of wall clock and of CPU that a person may take
PORT = 47111  # where the shell's server listens, in a network of its own
PATIENCE = 30.0  # seconds for the server to listen


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("rev", type=REVISION)
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@task_option
@sandbox_option
@name_option
@with_repo
@with_terminal
def shell(
    terminal: Terminal,
    repo: str | None,
    name: str | None,
    rev: str,
    command: tuple[str, ...],
    task: str | None,
    sandbox: str,
) -> None:
    """Run COMMAND, or a shell, in the sandbox on REV's files, as the evaluator would see them. Nothing is kept.

    Memory, processes and disk are limited as for candidates, time is not. The exit code is the command's.
    """
    if terminal.json and not command:
        raise UsageError("expected a command beside --json: evogit shell REV --json -- COMMAND")
    if not command and sandbox == "none":
        raise RefusedError("without a sandbox there is nothing to go into; see `evogit export`, or name a command")
    found, repository, history = task_context(task, repo, name)
    if history.seed is None:
        raise NotFoundError(f"the run {history.run} has no candidates yet; begin it with `evogit run`")
    candidate = resolve(history, rev)
    files = asyncio.run(candidate_files(repository, found, seed_tree(found, repository, history), candidate.tree))
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))  # leaves sandbox and terminal in order
    with _inside(found, files, sandbox) as session:
        if command:
            code = _run(terminal, session, command)
        else:
            terminal.note(f"{candidate.commit[:SHORT]}  {first_line(candidate.title)}: changes are not kept")
            code = _talk(terminal, session)
    sys.exit(code)


@contextmanager
def _inside(task: Task, files: Files, name: str) -> Iterator[Session]:
    """A session of a day on a candidate's files. Raises EvoGitError: the sandbox `name` cannot be had."""
    task.check_trust(name)
    with closing(provider(name, replace(task.environment, exclusive=False), [task.folder, Path.cwd()])) as sandbox:
        files = Scorer(task, sandbox, lambda _: None).laid(files)
        with sandbox.open(files, replace(task.limits, wall=DAY, cpu=DAY, total=DAY)) as session:
            yield session


def _run(terminal: Terminal, session: Session, command: tuple[str, ...]) -> int:
    stdin = b"" if sys.stdin.isatty() else sys.stdin.buffer.read()
    done = session.run(command, stdin=stdin)
    if terminal.json:
        texts = {name: getattr(done, name).decode(errors="backslashreplace") for name in ("stdout", "stderr")}
        terminal.data({"schema": SCHEMA, "code": done.code, "signal": done.signal, "breach": done.breach, **texts})
    else:
        for stream, text in ((sys.stdout, done.stdout), (sys.stderr, done.stderr)):
            if stream.isatty():
                text = harmless(text.decode(errors="backslashreplace")).encode(errors="backslashreplace")
            stream.flush()
            stream.buffer.write(text)
            stream.flush()
    if done.detail:
        terminal.note(first_line(done.detail), "yellow")
    if done.code is not None:
        return done.code
    return 128 + done.signal if done.signal else BROKEN


def _talk(terminal: Terminal, session: Session) -> int:
    columns, rows = shutil.get_terminal_size()
    person = sys.stdin.isatty() and sys.stdout.isatty()
    wish = ("terminal" if person else "pipes", str(rows), str(columns), os.environ.get("TERM", "dumb"))
    started = session.start(["python3", "-I", "-c", helper("shell_server.py"), str(PORT), *wish])
    stream = started if started.failure else session.connect(PORT, patience=PATIENCE)
    if not isinstance(stream, socket.socket):
        raise SandboxError(f"no shell starts in the sandbox, which needs python3 and sh: {stream.detail}")
    with stream:
        code = Bridge(stream).carry()
    if code is None:
        failure = session.failure()
        terminal.note(first_line(failure.detail) if failure else "the sandbox ended before its shell", "yellow")
        return BROKEN
    return code


# --- the person's terminal and the shell inside --------------------------------------------------------------------

HEAD = struct.Struct(">cH")
"""Of a frame, see sandbox/shell_server.py."""

MOST = 32768
"""Bytes of one frame."""

LOOK_EVERY = 0.5
"""Seconds after which a new size of the terminal is noticed at the latest."""


@dataclass(slots=True)
class Bridge:
    """Carries input and output between this process's streams and the server in the sandbox."""

    stream: socket.socket
    code: int | None = None
    """The shell's exit code, once it ended."""
    _waiting: bytearray = field(default_factory=bytearray)
    _leaving: bytearray = field(default_factory=bytearray)
    _raw: bool = False
    _decoder: codecs.IncrementalDecoder = field(
        default_factory=lambda: codecs.getincrementaldecoder("utf-8")("backslashreplace")
    )

    def carry(self) -> int | None:
        """Until the shell ends: its exit code, None when the sandbox ended before."""
        self.stream.settimeout(None)
        with contextlib.ExitStack() as stack:
            while len(self._waiting) < HEAD.size and (data := self.stream.recv(MOST)):
                self._waiting += data
            self._raw = self._waiting[:1] == b"t"  # there is a terminal inside
            if self._raw and sys.stdin.isatty():
                stack.enter_context(_raw_terminal())
                stack.enter_context(self._following_the_size())
            self._take()  # not before: what is typed at the first prompt is for the shell, as it is typed
            self.stream.setblocking(False)
            keys, more = sys.stdin.fileno(), True
            while True:
                leaving = bool(self._leaving)  # whoever does not take it may wait for us to take something
                reading = [self.stream, *([keys] if more and not leaving else [])]
                ready, takes, _ = select.select(reading, [self.stream] if leaving else [], [], LOOK_EVERY)
                if self.stream in ready:
                    data = self.stream.recv(MOST)
                    self._waiting += data
                    self._take()
                    if not data or self.code is not None:
                        return self.code
                if keys in ready:
                    typed = os.read(keys, MOST)
                    self._frame(b"d" if typed else b"e", typed)
                    more = bool(typed)
                if takes:
                    self._send()

    def _take(self) -> None:
        while len(self._waiting) >= HEAD.size:
            kind, size = HEAD.unpack_from(self._waiting)
            if len(self._waiting) < HEAD.size + size:
                return
            data = bytes(self._waiting[HEAD.size : HEAD.size + size])
            del self._waiting[: HEAD.size + size]
            if kind == b"d":
                self._print(data)
            elif kind == b"x" and data:
                self.code = data[0]

    def _print(self, data: bytes) -> None:
        if not self._raw and sys.stdout.isatty():
            data = harmless(self._decoder.decode(data)).encode(errors="backslashreplace")
        while data:
            data = data[os.write(sys.stdout.fileno(), data) :]

    def _frame(self, kind: bytes, data: bytes) -> None:
        self._leaving += HEAD.pack(kind, len(data)) + data

    def _send(self) -> None:
        try:
            del self._leaving[: self.stream.send(self._leaving)]
        except BlockingIOError:
            return
        except OSError:  # it ended meanwhile, and says so in the other direction
            self._leaving.clear()

    @contextlib.contextmanager
    def _following_the_size(self) -> Iterator[None]:
        def tell(number: int, frame: FrameType | None) -> None:
            size = shutil.get_terminal_size()
            self._frame(b"s", struct.pack(">HH", size.lines, size.columns))

        before = signal.signal(signal.SIGWINCH, tell)
        try:
            yield
        finally:
            signal.signal(signal.SIGWINCH, before)


def harmless(text: str) -> str:
    """A program's output without what a terminal obeys, but for line ends."""
    return "".join(each if each in "\n\r\t" else escape(each) for each in text)


@contextlib.contextmanager
def _raw_terminal() -> Iterator[None]:
    """Every key goes inside, Ctrl-C too; afterwards the terminal is as it was."""
    before = termios.tcgetattr(sys.stdin.fileno())
    tty.setraw(sys.stdin.fileno(), termios.TCSADRAIN)  # what was typed ahead is not thrown away
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, before)
