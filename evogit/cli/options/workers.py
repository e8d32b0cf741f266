"""`--workers` and `--trust`: where candidates are evaluated beside this machine."""

from __future__ import annotations

import functools
import os
from typing import Any

import click

from evogit.cli.options.shared import Command
from evogit.config.run_settings import WorkerSpec
from evogit.config.user_settings import load_user_settings


def with_workers(command: Command) -> Command:
    """Give a command `--trust`, and `--workers` as specifications in which names of the settings are resolved."""

    @click.option(
        "--workers",
        multiple=True,
        metavar="COMMAND[:N]",
        help="Evaluate N at a time there, too, such as 'ssh gpu1 evogit worker:4', ray:HOST:PORT:8, "
        "or a name of your settings.",
    )
    @click.option(
        "--trust",
        type=click.Choice(["believe", "verify"]),
        default="believe",
        show_default=True,
        help="Believe workers, or evaluate a tenth of what they say, and what seems best, again here.",
    )
    @functools.wraps(command)
    def wrapped(workers: tuple[str, ...], **rest: Any) -> Any:
        tables = load_user_settings(os.environ).workers if workers else {}
        known = {name: WorkerSpec(table.command, table.jobs, name) for name, table in tables.items()}
        return command(workers=tuple(WorkerSpec.parse(text, known) for text in workers), **rest)

    return wrapped
