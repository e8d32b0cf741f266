"""`evogit shell`: run a command in the sandbox that evaluates a candidate."""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import closing
from pathlib import Path

import click
from msgspec.structs import replace

from evogit.cli.lines.view import first_line
from evogit.cli.locate_run import seed_tree, task_context
from evogit.cli.options.shared import REVISION, name_option, sandbox_option, task_option, with_repo, with_terminal
from evogit.cli.terminal import Terminal
from evogit.cli.text import escape
from evogit.core import NotFoundError, UsageError
from evogit.evaluation.scorer import Scorer
from evogit.review import SCHEMA, resolve
from evogit.review.uncommitted import candidate_files
from evogit.sandbox.providers import provider
from evogit.sandbox.session import Session

BROKEN = 1
"""Exit code when a limit, or the end of the sandbox, ended the command."""

DAY_S = 86400.0


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
    """Run COMMAND in the sandbox on REV's files, as the evaluator would see them. Nothing is kept.

    For several commands: -- sh -c 'COMMANDS', or -- sh with the commands as input. Memory, processes and disk are
    limited as for candidates, time is not. The exit code is the command's.
    """
    if not command:
        raise UsageError("expected a command, such as `evogit shell REV -- sh -c 'ls -l; python3 benchmark.py'`")
    found, repository, history = task_context(task, repo, name)
    if history.seed is None:
        raise NotFoundError(f"the run {history.run} has no candidates yet; begin it with `evogit run`")
    candidate = resolve(history, rev)
    files = asyncio.run(candidate_files(repository, found, seed_tree(found, repository, history), candidate.tree))
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))  # leaves the sandbox in order
    found.check_trust(sandbox)
    with closing(provider(sandbox, replace(found.environment, exclusive=False), [found.folder, Path.cwd()])) as box:
        files = Scorer(found, box, lambda _: None).laid(files)
        with box.open(files, replace(found.limits, wall=DAY_S, cpu=DAY_S, total=DAY_S)) as session:
            code = _run(terminal, session, command)
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


def harmless(text: str) -> str:
    """Return a program's output without what a terminal obeys, but for line ends."""
    return "".join(each if each in "\n\r\t" else escape(each) for each in text)
