"""Shows a run while it goes on: drawn in place on a terminal, one line per event elsewhere."""

from __future__ import annotations

import asyncio
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Protocol

from rich.console import Group
from rich.live import Live
from rich.text import Text

from evogit.cli.lines.events import event_line
from evogit.cli.lines.spending import spent_words, use_text
from evogit.cli.lines.summary import count_words
from evogit.cli.lines.view import View, first_line
from evogit.cli.terminal import Terminal, silence
from evogit.cli.text import bar, clock, count, escape, percent, sparkline
from evogit.config.run_settings import Settings
from evogit.core import Entry, Evaluated
from evogit.engine.stop_request import ALL, CALLS
from evogit.history import History
from evogit.history.standing import gap
from evogit.review import uses

INTERVAL = 0.25
"""Seconds between two drawings."""

WINDOW = 15.0
"""Seconds over which the rate is measured."""


class Watch(Protocol):
    """What the engine's foreground needs of a display; it is a `run.Observer`, too."""

    def follow(self, history: History) -> None:
        """Show this run."""
        ...

    def entry(self, entry: Entry) -> None:
        """A fact was journalled."""
        ...

    def activity(self, agent: str, doing: str) -> None:
        """An agent turned to something else."""
        ...

    def stopping(self) -> None:
        """The run was asked to stop."""
        ...

    async def draw(self) -> None:
        """Keep the display fresh until cancelled."""
        ...

    async def finish(self) -> None:
        """The run is over: wait for what it set off."""
        ...

    def close(self) -> None:
        """Leave the terminal as it was."""
        ...


class Several:
    """Watches as one."""

    def __init__(self, watches: Sequence[Watch]) -> None:
        self._watches = watches

    def follow(self, history: History) -> None:
        """Have each show this run."""
        for watch in self._watches:
            watch.follow(history)

    def entry(self, entry: Entry) -> None:
        """Tell each."""
        for watch in self._watches:
            watch.entry(entry)

    def activity(self, agent: str, doing: str) -> None:
        """Tell each."""
        for watch in self._watches:
            watch.activity(agent, doing)

    def stopping(self) -> None:
        """Tell each."""
        for watch in self._watches:
            watch.stopping()

    async def draw(self) -> None:
        """Have all draw at the same time."""
        await asyncio.gather(*(watch.draw() for watch in self._watches))

    async def finish(self) -> None:
        """Wait for all."""
        await asyncio.gather(*(watch.finish() for watch in self._watches))

    def close(self) -> None:
        """Close each."""
        for watch in self._watches:
            watch.close()


class EventLines:
    """One line per event on stderr; `quiet`: only those that made a new best."""

    def __init__(self, terminal: Terminal, quiet: bool) -> None:
        self._terminal = terminal
        self._quiet = quiet
        self._best: str | None = None
        self._doing: dict[str, str] = {}
        self._view: View

    def follow(self, history: History) -> None:
        """Show this run."""
        self._view = View(history, self._terminal.err_glyphs, time.time())
        self._best = history.best

    def entry(self, entry: Entry) -> None:
        """Print it."""
        best, self._best = self._best, self._view.history.best
        if not self._quiet or best != self._best:
            line = Text(time.strftime("%H:%M:%S  ", time.localtime(entry.time)), "dim")
            try:
                self._terminal.note(line.append_text(event_line(self._view, entry.event)))
            except OSError:  # nobody reads any more, or the disk of a log is full; the run goes on
                silence(sys.stderr)

    def activity(self, agent: str, doing: str) -> None:
        """An agent's activity is not an event, but what is waited for in the end."""
        self._doing[agent] = doing

    def stopping(self) -> None:
        """Say so, and for whom."""
        busy = [f"{agent} {doing}" for agent, doing in self._doing.items() if doing]
        self._terminal.note(STOPPING + (f"; in flight: {escape(', '.join(busy))}" if busy else ""))

    async def draw(self) -> None:
        """Nothing to draw: lines are written when something happens."""

    async def finish(self) -> None:
        """Nothing to wait for."""

    def close(self) -> None:
        """Nothing to clear."""


HINT = "Ctrl-C stops cleanly; nothing is lost"

STOPPING = f"stopping: calls have {CALLS:g} s, evaluations {ALL:g} s; Ctrl-C again stops at once"


class Dashboard:
    """The state of a run in a few lines that stay where they are."""

    def __init__(self, terminal: Terminal, settings: Settings, *, age: float = 0.0, hint: str = HINT) -> None:
        """`age`: seconds since the engine began; `hint`: what ends the display."""
        self._terminal = terminal
        self._settings = settings
        self._hint = hint
        self._live = Live(console=terminal.err, auto_refresh=False, transient=True, vertical_overflow="crop")
        self._shown = time.monotonic()
        self._began = self._shown - age
        self._times: deque[float] = deque()
        self._bests: list[float] = []
        self._doing: dict[str, str] = {}
        self._asked = False
        self._view: View

    def follow(self, history: History) -> None:
        """Show this run, with what it reached before."""
        self._view = View(history, self._terminal.err_glyphs, time.time())
        known = [history.fitness(commit) for commit in history.records]
        self._bests = [value for value in known if value is not None]

    def entry(self, entry: Entry) -> None:
        """Count it."""
        history = self._view.history
        if not isinstance(entry.event, Evaluated) or entry.event.evaluation.split != history.split:
            return
        self._times.append(time.monotonic())
        value = history.fitness(history.best) if history.best else None
        if value is not None:
            self._bests.append(value)

    def activity(self, agent: str, doing: str) -> None:
        """Remember it for the next drawing."""
        self._doing[agent] = doing

    def stopping(self) -> None:
        """Say so at once."""
        self._asked = True
        self._refresh()

    async def draw(self) -> None:
        """Draw a few times a second until cancelled."""
        self._live.start()
        while True:
            self._refresh()
            await asyncio.sleep(INTERVAL)

    async def finish(self) -> None:
        """Nothing to wait for."""

    def close(self) -> None:
        """Clear the display and show the cursor again."""
        self._live.stop()

    def _refresh(self) -> None:
        if self._live.is_started:
            self._live.update(Group(*self._lines()), refresh=True)

    # --- lines ----------------------------------------------------------------------------------------------------

    def _lines(self) -> list[Text]:
        width, height = self._terminal.err.size
        facts = [self._best(width), self._work(), self._budget(width)]
        last = STOPPING if self._asked else self._hint
        agents = list(self._agents(max(height - len(facts) - 5, 1)))
        lines = [
            self._headline(width),
            *facts,
            Text(""),
            *agents,
            Text(""),
            Text(last, "yellow" if self._asked else "dim"),
        ]
        for line in lines:
            self._terminal.err_glyphs.cut(line, width - 1)
        return lines

    def _headline(self, width: int) -> Text:
        history, dot = self._view.history, f" {self._view.glyphs.dot} "
        agents, jobs = count(self._settings.agents, "agent"), f"{self._settings.jobs} evaluated at a time"
        if self._settings.workers:
            jobs += f" here, others on {count(len(self._settings.workers), 'worker')}"
        line = Text.assemble((history.run, "bold"), (dot + dot.join([agents, jobs, self._settings.split]), "dim"))
        spent = clock(time.monotonic() - self._began)
        return line.append(spent.rjust(max(width - 1 - line.cell_len, len(spent) + 1)), "dim")

    def _best(self, width: int) -> Text:
        history, view = self._view.history, self._view
        if history.started is None or history.best is None:
            return _fact("best", Text("evaluating the seed", "dim"))
        value = view.score(history.best)
        value.stylize("bold")
        falling = history.metric.direction == "minimize"
        spark = sparkline(self._bests, max(min(width - 64, 40), 12), view.glyphs.levels, falling=falling)
        seed = view.gain_over(history.best, history.seed or "")
        gain = Text.assemble("  ", seed, (" over the seed", "dim")) if history.best != history.seed else Text("")
        found = gap(history, history.best)
        share = found.share if found else None
        closed = Text(f", {percent(share)} of the gap" if share is not None and gain else "", "dim")
        return _fact("best", Text.assemble(value, "  ", (spark, "cyan"), gain, closed))

    def _work(self) -> Text:
        if self._view.history.started is None:
            return _fact("done", Text("starting", "dim"))
        now = time.monotonic()
        while self._times and now - self._times[0] > WINDOW:
            self._times.popleft()
        rate = len(self._times) / max(min(now - self._shown, WINDOW), 1.0)
        words = [*count_words(self._view.history)[:4], f"{rate:.1f}/s"]
        return _fact("done", Text(f" {self._view.glyphs.dot} ".join(words)))

    def _budget(self, width: int) -> Text:
        settings = self._settings
        minutes = (time.monotonic() - self._began) / 60
        shares = [(use.share, use_text(use)) for use in uses(self._view.history, settings)]
        if settings.minutes is not None:
            shares.append((minutes / settings.minutes, f"{clock(60 * minutes)} of {clock(60 * settings.minutes)}"))
        until = [] if settings.target is None else [f"until {settings.target:g} is reached"]
        until += spent_words(self._view.history)[:0:-1]  # money first: what is cut is at the end
        if not shares:
            return _fact("budget", Text(", ".join(until) or "none: until Ctrl-C", "dim"))
        share, spent = max(shares)
        told = ", ".join([spent, *until])
        room = max(min(width - len(told) - 12, 40), 10)
        drawn = bar(share, room, self._view.glyphs.full, self._view.glyphs.empty)
        return _fact("budget", Text.assemble((drawn, "cyan"), f"  {told}"))

    def _agents(self, room: int) -> Iterator[Text]:
        """What each agent does; with more agents than room, the rest in one line."""
        busy = list(self._doing.items())
        for name, doing in busy if len(busy) <= room else busy[: room - 1]:
            yield _fact(first_line(name), Text(escape(doing) or "done", "" if doing else "dim"))
        if len(busy) > room:
            yield Text(f"and {count(len(busy) - room + 1, 'more agent')}", "dim")


def _fact(name: str, text: Text) -> Text:
    return Text(f"{name:<8}", "dim").append_text(text)
