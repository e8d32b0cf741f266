"""`evogit shell`: look around in the sandbox that evaluates a candidate."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys

import click

from evogit.cli.lines.view import SHORT, first_line
from evogit.cli.locate_run import seed_tree, task_context
from evogit.cli.options.shared import REVISION, name_option, sandbox_option, task_option, with_repo, with_terminal
from evogit.cli.shell_terminal import Bridge, harmless
from evogit.cli.terminal import Terminal
from evogit.core import NotFoundError, RefusedError, UsageError
from evogit.review import SCHEMA, resolve
from evogit.review.shell import inside
from evogit.review.shell import shell as start_shell
from evogit.review.uncommitted import candidate_files
from evogit.sandbox.session import Session

BROKEN = 1
"""Exit code when a limit, or the end of the sandbox, ended the command."""


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
    with inside(found, files, sandbox) as session:
        if command:
            code = _run(terminal, session, command)
        else:
            terminal.note(f"{candidate.commit[:SHORT]}  {first_line(candidate.title)}: changes are not kept")
            code = _talk(terminal, session)
    sys.exit(code)


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
    stream = start_shell(session, terminal=person, size=(rows, columns), term=os.environ.get("TERM", "dumb"))
    with stream:
        code = Bridge(stream).carry()
    if code is None:
        failure = session.failure()
        terminal.note(first_line(failure.detail) if failure else "the sandbox ended before its shell", "yellow")
        return BROKEN
    return code
