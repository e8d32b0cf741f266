"""`evogit watch`: a run on the screen, as it goes on."""

from __future__ import annotations

import gc
import os
import shutil
import sys
from typing import TYPE_CHECKING, Any

import click
from msgspec import to_builtins

from evogit.cli.locate_run import find_repository, run_at_work
from evogit.cli.options.shared import name_option, with_repo, with_terminal
from evogit.core import UsageError
from evogit.review import status_record
from evogit.review.runs import find_run, origin_notes

if TYPE_CHECKING:
    from evogit.cli.screen.watching import Watched
    from evogit.cli.terminal import Terminal
    from evogit.repository import Repository


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
    from evogit.cli.screen.watching import frame_of

    if run is not None and name not in (None, run):
        raise UsageError(f"expected one run, got {run} and --name {name}")
    if not (once or terminal.json):
        _check_terminal()
    repository = find_repository(repo)
    found = find_run(repository, run or name or run_at_work(repository))
    if not (once or terminal.json):
        notes = _follow(repository, found, terminal)
    else:
        watched = _watched(repository, found, terminal)
        notes = origin_notes(watched.place)
        if terminal.json:
            terminal.data(_record(watched))
        else:
            size = shutil.get_terminal_size((80, 24))
            terminal.print(frame_of(watched, size.columns, size.lines).lines())
    for note in notes:
        terminal.note(f"note: {note}")


def _watched(repository: Repository, run: str, terminal: Terminal) -> Watched:
    """The run, read whole."""
    from evogit.cli.screen.watching import Watched
    from evogit.review.followed_run import Following

    gc.disable()  # what is read stays until the command ends, and there is much of it
    try:
        return Watched(Following(repository, run), terminal)
    finally:
        gc.enable()
        gc.freeze()


def _record(watched: Watched) -> dict[str, Any]:
    """How the run stands, what its agents do, and when it will end."""
    forecast = watched.now.forecast
    about = {"doing": watched.now.agents, "forecast": to_builtins(forecast) if forecast else None}
    return {**status_record(watched.place.repository, watched.place.history), **about}


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


def _follow(repository: Repository, run: str, terminal: Terminal) -> list[str]:
    """Until the person leaves; what they should know about where the run comes from, which is shown at first, too."""
    from evogit.cli.screen.tty import Screen
    from evogit.cli.screen.watching import Loop

    with Screen() as screen:
        screen.show([f"reading {run}"])
        watched = _watched(repository, run, terminal)
        notes = origin_notes(watched.place)
        Loop(watched, screen, terminal.out, "; ".join(notes)).run()
    return notes
