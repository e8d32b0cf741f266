"""The one question about what comes from elsewhere; the command starts over once it is answered."""

from __future__ import annotations

import sys

import click

from evogit.cli.text import escape
from evogit.trust import Trust, UntrustedError


def granted(error: UntrustedError) -> bool:
    """Show what would happen and ask; return whether it is trusted now. Without a terminal nothing is asked."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    click.echo("This comes from elsewhere and was not trusted on this machine:", err=True)
    for claim in error.claims:
        click.echo(f"  {escape(claim.effect)}", err=True)
    if not click.confirm("Do you trust it? (It is asked once; `evogit trust` lists and revokes.)", err=True):
        return False
    trust = Trust.of_user()
    for claim in error.claims:
        trust.add(claim)
    return True
