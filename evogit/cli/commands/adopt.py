"""`evogit adopt`: the old name of `evogit new --from`, which still works for one release."""

from __future__ import annotations

from pathlib import Path

import click

from evogit.cli.new_from import adopt_task, check_absent, outside_option
from evogit.cli.options.shared import sandbox_option, with_terminal
from evogit.cli.terminal import Terminal


@click.command(hidden=True)
@click.argument("path", type=click.Path(path_type=Path))
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@outside_option
@sandbox_option
@with_terminal
def adopt(terminal: Terminal, path: Path, folder: Path, sandbox: str, outside: bool) -> None:
    """Write the task of another system at PATH to DIR: the old name of `evogit new NAME --from PATH`."""
    terminal.note(f"evogit adopt is now: evogit new {folder.name} --from {path}", "yellow")
    check_absent(folder, False)
    adopt_task(terminal, path, folder, sandbox, outside=outside)
