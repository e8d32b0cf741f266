"""Asking a person before something is changed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from shutil import get_terminal_size
from textwrap import fill
from typing import Any

import click

from evogit.cli.terminal import Terminal
from evogit.cli.text import escape
from evogit.core import RefusedError
from evogit.trust import Trust, UntrustedError

Command = Callable[..., Any]


def asks(command: Command) -> Command:
    """Give a command `--yes` and `--dry-run`."""
    command = click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")(command)
    return click.option("-y", "--yes", is_flag=True, help="Do not ask; needed without a terminal.")(command)


def confirm(terminal: Terminal) -> None:
    """Ask whether to do what was shown. Raise RefusedError if the answer is no, or there is no terminal to give one."""
    check_confirmable(terminal)
    if not click.confirm("Apply this?", err=True):
        raise RefusedError("nothing was changed")


def check_confirmable(terminal: Terminal) -> None:
    """Raise RefusedError if there is no terminal to ask on: better before long work than after it."""
    if not terminal.interactive:
        raise RefusedError("there is no terminal to ask on; add --yes to decide, or --dry-run to look")


def granted(error: UntrustedError) -> bool:
    """Show what would happen and ask, if that can be shown whole on a terminal; return whether it is trusted now."""
    shown_whole = all(claim.is_shown_whole for claim in error.claims)
    if not (shown_whole and sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    click.echo("EvoGit did not make this here, and you have not trusted it on this machine:", err=True)
    form: dict[str, Any] = {"break_on_hyphens": False, "break_long_words": False, "subsequent_indent": "    "}
    for claim in error.claims:
        click.echo(fill(claim.shown, max(get_terminal_size().columns, 40), initial_indent="  - ", **form), err=True)
    for folder in dict.fromkeys(claim.subject for claim in error.claims if claim.kind == "folder"):
        click.echo(f"Whatever lies in {escape(folder)} may then run with your rights, now and after edits.", err=True)
    if not click.confirm("Do you trust it? (It is asked once; `evogit trust` lists and revokes.)", err=True):
        return False
    trust = Trust.of_user()
    for claim in error.claims:
        trust.add(claim)
    return True
