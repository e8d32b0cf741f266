"""The one question about what comes from elsewhere; the command starts over once it is answered."""

from __future__ import annotations

import sys
from shutil import get_terminal_size
from textwrap import fill
from typing import Any

import click

from evogit.cli.text import escape
from evogit.trust import Trust, UntrustedError


def granted(error: UntrustedError) -> bool:
    """Show what would happen and ask; return whether it is trusted now.

    Without a terminal nothing is asked, and nothing about what cannot be shown whole.
    """
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
