"""`evogit runs`: all runs of a person on this machine."""

from __future__ import annotations

import os

import click

from evogit.cli.lines.runs import run_table
from evogit.cli.options.shared import with_terminal
from evogit.cli.terminal import Terminal
from evogit.core import RepositoryError
from evogit.review import SCHEMA
from evogit.review.run_list import RunList, RunOverview


@click.command()
@with_terminal
def runs(terminal: Terminal) -> None:
    """List your runs in all repositories of this machine: at work since when, or why and when each ended.

    Runs that were removed, and those whose repository is gone, are dropped from the list.
    """
    listed = RunList.of_person(os.environ).opened()
    found = [
        RunOverview.unreadable(each, opened)
        if isinstance(opened, RepositoryError)
        else RunOverview.of(opened, each.run)
        for each, opened in listed
    ]
    if terminal.json:
        terminal.data({"schema": SCHEMA, "runs": [each.record() for each in found]})
    elif found:
        terminal.show(run_table(found, folders=True))
    else:
        terminal.note("no run was started here yet; begin one with `evogit run`")
