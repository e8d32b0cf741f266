"""Shows a run in the foreground: drawn in place on a terminal, one line per event elsewhere."""

from __future__ import annotations

import asyncio
import sys
import time

from rich.console import Group
from rich.live import Live
from rich.text import Text

from evogit.cli.lines.events import event_line
from evogit.cli.lines.view import View
from evogit.cli.screen import Now, agent_lines, facts, fit
from evogit.cli.terminal import Terminal, silence
from evogit.config.run_settings import Settings
from evogit.engine.stop_request import ALL, CALLS
from evogit.events import Entry
from evogit.history import History

INTERVAL_S = 0.25

HINT = "Ctrl-C stops cleanly"

STOPPING = f"stopping: calls have {CALLS:g} s, evaluations {ALL:g} s; Ctrl-C again stops at once"


class Watch:
    """A display of a run; it is a `run.Observer`, too. This one shows nothing."""

    def follow(self, history: History) -> None:
        """Show this run."""

    def entry(self, entry: Entry) -> None:
        """Take an entry of the journal."""

    def activity(self, agent: str, doing: str) -> None:
        """Take an agent's new activity."""

    def stopping(self) -> None:
        """Report that the run was asked to stop."""

    async def draw(self) -> None:
        """Keep the display fresh until cancelled."""

    def close(self) -> None:
        """Leave the terminal as it was."""


class EventLines(Watch):
    """One line per event on stderr; `quiet`: only events that changed the best."""

    def __init__(self, terminal: Terminal, quiet: bool) -> None:
        self._terminal = terminal
        self._quiet = quiet
        self._best: str | None = None
        self._history: History

    def follow(self, history: History) -> None:
        """Show this run."""
        self._history, self._best = history, history.best

    def entry(self, entry: Entry) -> None:
        """Print the event."""
        best, self._best = self._best, self._history.best
        if not self._quiet or best != self._best:
            line = Text(time.strftime("%H:%M:%S  ", time.localtime(entry.time)), "dim")
            try:
                view = View(self._history, self._terminal.err_glyphs, time.time())
                self._terminal.note(line.append_text(event_line(view, entry.event)))
            except OSError:  # the reader is gone, or the disk of a log is full; the run continues
                silence(sys.stderr)

    def stopping(self) -> None:
        """Print how long the run waits."""
        self._terminal.note(STOPPING)


class Dashboard(Watch):
    """The state of a run in a few lines that stay where they are."""

    def __init__(self, terminal: Terminal, settings: Settings) -> None:
        self._terminal = terminal
        self._settings = settings
        self._live = Live(console=terminal.err, auto_refresh=False, transient=True, vertical_overflow="crop")
        self._began = time.time()
        self._doing: dict[str, str] = {}
        self._stopping = False
        self._history: History

    def follow(self, history: History) -> None:
        """Show this run."""
        self._history = history

    def activity(self, agent: str, doing: str) -> None:
        """Remember the activity for the next drawing."""
        self._doing[agent] = doing

    def stopping(self) -> None:
        """Say so at once."""
        self._stopping = True
        self._refresh()

    async def draw(self) -> None:
        """Draw a few times a second until cancelled."""
        self._live.start()
        while True:
            self._refresh()
            await asyncio.sleep(INTERVAL_S)

    def close(self) -> None:
        """Clear the display and show the cursor again."""
        self._live.stop()

    def _refresh(self) -> None:
        if not self._live.is_started:
            return
        width, height = self._terminal.err.size
        now = Now(time=time.time(), agents=self._doing, began=self._began)
        view = View(self._history, self._terminal.err_glyphs, now.time)
        top = facts(view, self._settings, now, width - 1)
        hint = Text(STOPPING if self._stopping else HINT, "yellow" if self._stopping else "dim")
        agents = agent_lines(view, now, max(height - len(top) - 4, 1))
        self._live.update(Group(*fit(view, [*top, Text(), *agents, Text(), hint], width - 1)), refresh=True)
