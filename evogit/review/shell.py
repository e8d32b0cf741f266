"""Opens a sandbox on a candidate for a person to look around in; nothing is kept."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from msgspec.structs import replace

from evogit.config import Task
from evogit.core import Files, SandboxError
from evogit.evaluation.scorer import Scorer
from evogit.sandbox.interpreter import helper
from evogit.sandbox.providers import provider
from evogit.sandbox.session import Session

DAY = 86400.0  # seconds of wall clock and of CPU that a person may take
PORT = 47111  # where the shell's server listens, in a network of its own
PATIENCE = 30.0  # seconds for the server to listen


@contextmanager
def inside(task: Task, files: Files, name: str) -> Iterator[Session]:
    """A session of a day on a candidate's files. Raises EvoGitError: the sandbox `name` cannot be had."""
    task.check_trust(name)
    with closing(provider(name, replace(task.environment, exclusive=False), [task.folder, Path.cwd()])) as sandbox:
        files = Scorer(task, sandbox, lambda _: None).laid(files)
        with sandbox.open(files, replace(task.limits, wall=DAY, cpu=DAY, total=DAY)) as session:
            yield session


def shell(session: Session, *, terminal: bool, size: tuple[int, int], term: str) -> socket.socket:
    """Start a shell inside; a stream of the frames of sandbox/shell_server.py, with a terminal if one is wanted.

    It has a `size` (rows, columns) and the kind `term`. Raises SandboxError: it does not start.
    """
    server = helper("shell_server.py")
    wish = "terminal" if terminal else "pipes"
    started = session.start(["python3", "-I", "-c", server, str(PORT), wish, *map(str, size), term])
    stream = started if started.failure else session.connect(PORT, patience=PATIENCE)
    if not isinstance(stream, socket.socket):
        raise SandboxError(f"no shell starts in the sandbox, which needs python3 and sh: {stream.detail}")
    return stream
