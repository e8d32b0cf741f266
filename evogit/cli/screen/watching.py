"""The loop of `watch`: looks at the journal, heeds keys, draws what changed."""

from __future__ import annotations

import time

from rich.console import Console
from rich.text import Text

from evogit.cli.lines.view import StillView
from evogit.cli.locate_run import Place
from evogit.cli.screen.frame import Frame, draw, graph_height, text_height
from evogit.cli.screen.key_actions import obey, planned_anew
from evogit.cli.screen.picture import Now, Picture
from evogit.cli.screen.state import Order, State, press
from evogit.cli.screen.tty import Screen
from evogit.cli.terminal import Terminal
from evogit.review import last_limits
from evogit.review.followed_run import Following, doing

LOOK_EVERY = 0.25
"""Seconds between two looks at the journal."""

SHARE = 0.2
"""Of one core, what drawing may take at most: a run that writes much is drawn less often."""


class Watched:
    """A run and how it looks now."""

    def __init__(self, following: Following, terminal: Terminal) -> None:
        self._following = following
        self._terminal = terminal
        self.place = Place.of(following.run)
        self.now = self._look()
        self._entries = 0
        self._picture: Picture | None = None

    @property
    def changed(self) -> bool:
        """Read on; whether anything is otherwise than at the last look."""
        news, before = self._following.read_on(), self.now
        self.now = self._look()
        same = (before.agents, before.began) == (self.now.agents, self.now.began)
        ticks = self.now.agents is not None and int(before.time) != int(self.now.time)
        return news or not same or ticks

    def _look(self) -> Now:
        history, repository, now = self._following.history, self._following.run.repository, time.time()
        agents = doing(repository, history)
        began = repository.engines(history.run).since() if agents is not None else None
        if began is None:
            return Now(time=now, agents=agents)
        pace = self._following.pace
        forecast = pace.forecast(last_limits(history), began, now)
        rate = pace.per_second("evaluations", now)
        return Now(time=now, agents=agents, began=began, forecast=forecast, per_second=rate)

    def picture(self, state: State, width: int) -> Picture:
        """What it looks like now; the same as before where nothing of it is otherwise."""
        known, entries = self._picture, self._following.entries
        if (
            known is not None
            and (entries, state.unfolded, width) == (self._entries, known.unfolded, known.view.width)
            and (state.selected is None or state.selected in known.number)
        ):
            return known
        self._entries = entries
        self._picture = Picture(
            view=StillView(self._following.history, self._terminal.glyphs, self.now.time, width),
            steps=self._following.history.course.steps,
            latest=self._following.latest,
            unfolded=state.unfolded,
            kept=state.selected,
        )
        return self._picture


def frame_of(watched: Watched, width: int, height: int) -> Frame:
    """One frame as it is at first."""
    state = State()
    return draw(watched.picture(state, width), watched.now, state, width, height)


class Loop:
    """A person at a terminal looks at a run."""

    def __init__(self, watched: Watched, screen: Screen, console: Console, note: str = "") -> None:
        """`note`: what the person should know first."""
        self._watched = watched
        self._screen = screen
        self._console = console
        self._state = State(message=Text(note, "yellow"))
        self._picture = watched.picture(self._state, screen.size[0])

    def run(self) -> None:
        """Until the person leaves."""
        due = 0.0
        while True:
            pressed = self._screen.keys(due - time.monotonic())
            for key in pressed:
                if not self._heed(key):
                    return
            late = time.monotonic() >= due
            news = late and self._watched.changed
            if news:
                self._state = planned_anew(self._state, self._watched.place, self._picture.view)
            if news or pressed or self._screen.resized:
                began = time.process_time()
                self._draw()
                due = time.monotonic() + max(LOOK_EVERY, (time.process_time() - began) / SHARE) if late else due
            elif late:
                due = time.monotonic() + LOOK_EVERY

    def _heed(self, key: str) -> bool:
        """Do what a key asks for; whether the person stays."""
        width, height = self._screen.size
        room = text_height(height) if self._state.reading else graph_height(width, height)
        self._state, order = press(key, self._state, self._picture, room)
        if order is None:
            self._look()
            return True
        if order.kind == "quit":
            return False
        if order.kind == "redraw":
            self._screen.resized = True
            return True
        self._obey(order)
        return True

    def _obey(self, order: Order) -> None:
        self._state = obey(order, self._state, self._watched.place, self._picture.view)
        self._look()

    def _look(self) -> None:
        self._picture = self._watched.picture(self._state, self._screen.size[0])

    def _draw(self) -> None:
        width, height = self._screen.measure()
        self._look()
        frame = draw(self._picture, self._watched.now, self._state, width, height)
        self._screen.show([self._painted(pieces) for pieces in frame.pieces], frame.cursor)

    def _painted(self, pieces: list[tuple[int, Text]]) -> str:
        """A row with its styles, each piece at its column, whatever width the terminal gives to what is before it."""
        return "".join(
            f"\x1b[{column + 1}G{self._styled(line)}" if column else self._styled(line) for column, line in pieces
        )

    def _styled(self, line: Text) -> str:
        with self._console.capture() as captured:
            self._console.print(line, end="", soft_wrap=True)
        return captured.get()
