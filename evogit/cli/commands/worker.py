"""`evogit worker`: evaluates for a run that started it, over stdin and stdout."""

from __future__ import annotations

import os
import socket
import stat

import click

from evogit.core import RefusedError, UsageError
from evogit.evaluation.workers.main import main


@click.command()
def worker() -> None:
    """Evaluate candidates for a run on another machine, in a sandbox of this one.

    A run starts it, over ssh or anything else that passes stdin and stdout on; it ends with the run. See
    docs/scaling.md.
    """
    if not all(stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) for mode in (os.fstat(0).st_mode, os.fstat(1).st_mode)):
        raise UsageError("a run starts this over pipes: `evogit run TASK --workers 'ssh HOST evogit worker:4'`")
    if stat.S_ISSOCK(os.fstat(0).st_mode):
        with socket.socket(fileno=os.dup(0)) as connection:
            family = connection.family
        if family in (socket.AF_INET, socket.AF_INET6):
            raise RefusedError(
                "expected the pipes of a command line of yours, such as ssh's, got a connection from the network: "
                "anyone who connects would run code with your rights"
            )
    main()
