"""`evogit attach`: follows a run that another process works on."""

from __future__ import annotations

import asyncio
import os
import sys
import time

import click

from evogit.cli.hooks import INTERRUPTED
from evogit.cli.lines.summary import ending_of_others
from evogit.cli.locate_run import Place, find_repository, open_place, run_at_work
from evogit.cli.options.shared import name_option, with_repo, with_terminal
from evogit.cli.terminal import Terminal
from evogit.cli.watch import INTERVAL, Dashboard, EventLines, Watch
from evogit.review import last_settings, status_record
from evogit.review.followed_run import doing
from evogit.review.run_list import RunList

PATIENCE = 10.0
"""Seconds that the exit code of a run which is over is waited for: meanwhile it says how it went."""


@click.command()
@name_option
@with_repo
@with_terminal
def attach(repo: str | None, name: str | None, terminal: Terminal) -> None:
    """Follow a run that is at work, such as one begun with `run --detach`, and say how it ended, now or before.

    Ctrl-C leaves it running. Ends with the exit code of the run.
    """
    place = open_place(repo, name or run_at_work(find_repository(repo)))
    since = place.repository.engines(place.history.run).since()
    if since is not None:
        _watch(place, terminal, time.time() - since)
    if terminal.json:
        terminal.data(status_record(place.repository, place.history))
    else:
        terminal.show(ending_of_others(place, terminal))
    sys.exit(_exit_code(place))


def _watch(place: Place, terminal: Terminal, age: float) -> None:
    """Follow a run that has been at work for `age` seconds.

    Raises:
        SystemExit: Ctrl-C.
    """
    hint = f"Ctrl-C leaves it running; `{place.hint('stop')}` ends it"
    settings = last_settings(place.history)
    watch: Watch = Dashboard(terminal, settings, age=age, hint=hint) if terminal.live else EventLines(terminal, False)
    watch.follow(place.history)
    try:
        asyncio.run(_follow(place, watch))
    except KeyboardInterrupt:
        terminal.note(f"{place.history.run} goes on; `{place.hint('attach')}` follows it again")
        sys.exit(INTERRUPTED)


async def _follow(place: Place, watch: Watch) -> None:
    """Show what comes until no engine is at work."""
    place.journal.subscribe(watch.entry)
    drawing = asyncio.create_task(watch.draw())
    agents = Doing(place)
    try:
        while agents.tell(watch):
            place.journal.refresh()
            await asyncio.sleep(INTERVAL)
        place.journal.refresh()
    finally:
        drawing.cancel()
        watch.close()


class Doing:
    """What each agent does, as far as the journal says: it knows what is evaluated and what is asked."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._told: dict[str, str] = {}

    def tell(self, watch: Watch) -> bool:
        """Tell what is new; whether any engine is at work."""
        now = doing(self._place.repository, self._place.history)
        for agent, what in (now or {}).items():
            if self._told.get(agent) != what:
                watch.activity(agent, what)
        self._told = now or {}
        return now is not None


def _exit_code(place: Place) -> int:
    """That of the process that worked on the run last; where it left none, what the journal tells."""
    listed, until = RunList.of_person(os.environ), time.monotonic() + PATIENCE
    while (found := listed.find(place.repository, place.history.run)) and found.alive:
        if found.exit is not None or time.monotonic() > until:
            break
        time.sleep(INTERVAL)
    if found and found.exit is not None:
        return found.exit
    stopped = place.history.stopped
    if stopped is None or stopped.reason == "error":
        return 1
    return INTERRUPTED if stopped.reason == "interrupted" else 0
