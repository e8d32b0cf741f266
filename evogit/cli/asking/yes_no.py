"""Asking a person before something is changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from evogit.cli.terminal import Terminal
from evogit.core import RefusedError

Command = Callable[..., Any]


def asks(command: Command) -> Command:
    """Give a command `--yes` and `--dry-run`."""
    command = click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")(command)
    return click.option("-y", "--yes", is_flag=True, help="Do not ask; needed without a terminal.")(command)


def confirm(terminal: Terminal) -> None:
    """Ask whether to do what was shown.

    Raises:
        RefusedError: the answer is no, or there is no terminal to give one.
    """
    check_confirmable(terminal)
    if not click.confirm("Apply this?", err=True):
        raise RefusedError("nothing was changed")


def check_confirmable(terminal: Terminal) -> None:
    """Refuse without a terminal to ask on: better before long work than after it.

    Raises:
        RefusedError: there is no terminal.
    """
    if not terminal.interactive:
        raise RefusedError("there is no terminal to ask on; add --yes to decide, or --dry-run to look")
