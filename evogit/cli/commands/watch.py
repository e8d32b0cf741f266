"""`evogit watch`: a run on the screen, as it goes on."""

from __future__ import annotations

import gc
import os
import shutil
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from evogit.cli.locate_run import find_repository, run_at_work
from evogit.cli.shared_options import name_option, with_repo, with_terminal
from evogit.core import UsageError
from evogit.review import open_run, status_record

if TYPE_CHECKING:
    from evogit.cli.screen.watching import Watched
    from evogit.cli.terminal import Terminal


@click.command()
@click.argument("run", required=False)
@click.option("--once", is_flag=True, help="Print one frame and end; works without a terminal.")
@name_option
@with_repo
@with_terminal
def watch(repo: str | None, name: str | None, terminal: Terminal, run: str | None, once: bool) -> None:
    """Watch RUN on the whole screen: its lineage as it grows, its agents, the best so far, what it will cost.

    It follows a run that any process works on, and looks at one that is over. Keys show a candidate and what it
    changed, promote, prune and undo; `?` lists them. Leaving it (`q`, Ctrl-C) leaves the run alone.
    """
    from evogit.cli.screen.watching import Watched
    from evogit.review.following import Following

    if run is not None and name not in (None, run):
        raise UsageError(f"expected one run, got {run} and --name {name}")
    watched_by_person = not once and not terminal.json
    if watched_by_person:
        _check_terminal()
    repository = find_repository(repo)
    found = open_run(repository, run or name or run_at_work(repository))
    gc.disable()  # what is read stays until the command ends, and there is much of it
    following = Following(repository, found.history.run)
    gc.enable()
    gc.freeze()
    watched = Watched(following, terminal)
    if terminal.json:
        forecast = watched.now.forecast
        about = {"doing": watched.now.agents, "forecast": asdict(forecast) if forecast else None}
        terminal.data({**status_record(repository, following.history), **about})
    elif once:
        _print(watched, terminal)
    else:
        _follow(watched, terminal)


def _check_terminal() -> None:
    """Refuse where there is none.

    Raises:
        UsageError: keys or frames would go astray.
    """
    astray = [name for name in ("stdin", "stdout") if not getattr(sys, name).isatty()]
    if astray:
        raise UsageError(f"expected a terminal, but {' and '.join(astray)} is none; --once prints one frame")
    if os.environ.get("TERM", "dumb") == "dumb":
        raise UsageError("expected a terminal that can place text, got TERM=dumb; --once prints one frame")


def _print(watched: Watched, terminal: Terminal) -> None:
    from evogit.cli.screen.watching import frame_of

    size = shutil.get_terminal_size((80, 24))
    terminal.print(frame_of(watched, max(size.columns, 1), max(size.lines, 1)).lines())


def _follow(watched: Watched, terminal: Terminal) -> None:
    from evogit.cli.screen.tty import Screen
    from evogit.cli.screen.watching import Loop

    with Screen() as screen:
        Loop(watched, screen, terminal.out).run()
