"""`evogit watch`: a run on the screen, live; without a terminal, a line per event until it ends."""

from __future__ import annotations

import os
import re
import select
import signal
import sys
import termios
import threading
import time
import tty
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import accumulate

import click
from msgspec.structs import replace
from rich.cells import chop_cells
from rich.console import Group
from rich.live import Live
from rich.text import Text

from evogit.cli.hooks import INTERRUPTED
from evogit.cli.lines.candidate import candidate_lines
from evogit.cli.lines.compare import change_lines
from evogit.cli.lines.phylogeny import row_lines
from evogit.cli.lines.summary import ending
from evogit.cli.lines.view import SHORT, View
from evogit.cli.locate_run import Place, find_repository, open_place, run_at_work
from evogit.cli.options.shared import name_option, with_repo, with_terminal
from evogit.cli.screen import Now, agent_lines, facts, fit
from evogit.cli.terminal import Terminal
from evogit.cli.watch import INTERVAL_S, EventLines
from evogit.config.run_settings import Settings
from evogit.core import UsageError
from evogit.events import Entry
from evogit.review import last_settings, rows, status_record
from evogit.review.forecast import Pace, doing, forecast_record
from evogit.review.graph import skeleton
from evogit.review.run_list import RunList
from evogit.review.runs import origin_notes

MAX_CPU_SHARE = 0.2
"""Of one core, for drawing: a run with many candidates is drawn less often."""

EXIT_CODE_WAIT_S = 10.0
"""The wait for the exit code of an ended run, whose process still prints its summary."""

ESCAPE_WAIT_S = 0.05
"""After an escape: over ssh the rest of a key may arrive late."""

KEY_NAMES = {
    **dict.fromkeys(("k", "\x1b[A", "\x1bOA"), "up"),
    **dict.fromkeys(("j", "\x1b[B", "\x1bOB"), "down"),
    **dict.fromkeys(("g", "\x1b[H", "\x1b[1~", "\x1bOH"), "home"),
    **dict.fromkeys(("G", "\x1b[F", "\x1b[4~", "\x1bOF"), "end"),
    **dict.fromkeys(("\x1b[5~",), "page-up"),
    **dict.fromkeys(("\x1b[6~", " "), "page-down"),
    **dict.fromkeys(("\r", "\n"), "enter"),
    **dict.fromkeys(("\x1b", "\x7f"), "escape"),
}


@click.command()
@click.argument("run", required=False)
@name_option
@with_repo
@with_terminal
def watch(repo: str | None, name: str | None, terminal: Terminal, run: str | None) -> None:
    """Watch RUN, which any process may work on, and print how it ended.

    On a terminal it fills the screen: the best so far, the budget, the agents, and the lineage as it grows. The arrow
    keys (or j, k, Page Up, Page Down, g, G, b for the best) select a candidate, Enter shows it, d its change, D its
    change since the seed, n and N the next ones, Esc goes back. `q` and Ctrl-C leave the run alone.

    Without a terminal it prints a line per event until the run ends. The exit code is that of the run if it is over.
    """
    if run is not None and name not in (None, run):
        raise UsageError(f"expected one run, got {run} and --name {name}")
    place = open_place(repo, run or name or run_at_work(find_repository(repo)))
    dumb, interrupted = os.environ.get("TERM", "dumb") == "dumb", False
    try:
        if terminal.json or dumb or not (sys.stdin.isatty() and sys.stdout.isatty()):
            _follow(place, terminal)
        else:
            _browse(place, terminal)
    except KeyboardInterrupt:
        interrupted = True
    over = not place.repository.engines(place.history.run).alive()
    if terminal.json:
        now = _now(place)
        forecast = forecast_record(place, Pace(place.history), now.time)
        record = status_record(place.repository, place.history)
        terminal.data({**record, "doing": now.agents, "forecast": forecast})
    elif over:
        terminal.show(ending(place, terminal))
    else:
        terminal.note(f"{place.history.run} continues; `{place.hint('watch')}` follows it again")
    sys.exit(INTERRUPTED if interrupted else _exit_code(place) if over else 0)


def _now(place: Place) -> Now:
    agents = doing(place.repository, place.history)
    began = place.repository.engines(place.history.run).since() if agents is not None else None
    return Now(time=time.time(), agents=agents, began=began)


def _follow(place: Place, terminal: Terminal) -> None:
    lines = EventLines(terminal, quiet=False)
    lines.follow(place.history)
    place.journal.subscribe(lines.entry)
    while place.repository.engines(place.history.run).alive():
        place.journal.refresh()
        time.sleep(INTERVAL_S)
    place.journal.refresh()


def _exit_code(place: Place) -> int:
    """Return the exit code of the process that worked on the run last, or one that its journal implies."""
    runs, until = RunList.of_person(os.environ), time.monotonic() + EXIT_CODE_WAIT_S
    while (listed := runs.find(place.repository, place.history.run)) and listed.alive:
        if listed.exit is not None or time.monotonic() > until:
            break
        time.sleep(INTERVAL_S)
    if listed and listed.exit is not None:
        return listed.exit
    stopped = place.history.stopped
    if stopped is None or stopped.reason == "error":
        return 1
    return INTERRUPTED if stopped.reason == "interrupted" else 0


def _browse(place: Place, terminal: Terminal) -> None:
    browser = Browser(place, last_settings(place.history), "; ".join(origin_notes(place)))
    live = Live(console=terminal.out, screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)
    news: list[Entry] = []
    place.journal.subscribe(news.append)
    resized = threading.Event()
    signal.signal(signal.SIGWINCH, lambda number, frame: resized.set())
    due, before = 0.0, None
    with live, _keyboard(live) as keyboard:
        while True:
            keys = _read_keys(keyboard, max(due - time.monotonic(), 0.0))
            if not all(browser.press(key) for key in keys):
                return
            began, width, height = time.process_time(), *terminal.out.size
            place.journal.refresh()
            now = _now(place)
            state = (now.agents, width, height, now.agents is not None and int(now.time))
            if news or keys or resized.is_set() or state != before:
                resized.clear()
                browser.read(View(place.history, terminal.glyphs, now.time, width))
                live.update(Group(*browser.draw(now, width, height)), refresh=True)
            news.clear()
            before = state
            due = time.monotonic() + max(INTERVAL_S, (time.process_time() - began) / MAX_CPU_SHARE)


@contextmanager
def _keyboard(live: Live) -> Iterator[int]:
    """Have keys arrive one by one on a file descriptor, and give the terminal back whatever ends this process."""
    keyboard = sys.stdin.fileno()
    mode = termios.tcgetattr(keyboard)

    def end(number: int, frame: object) -> None:
        sys.exit(128 + number)

    def suspend(number: int, frame: object) -> None:
        live.stop()
        termios.tcsetattr(keyboard, termios.TCSANOW, mode)
        signal.raise_signal(signal.SIGSTOP)
        tty.setcbreak(keyboard, termios.TCSANOW)
        live.start(refresh=True)

    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, end)
    signal.signal(signal.SIGTSTP, suspend)
    try:
        tty.setcbreak(keyboard, termios.TCSANOW)
        yield keyboard
    finally:
        with suppress(termios.error):  # the terminal is gone
            termios.tcsetattr(keyboard, termios.TCSANOW, mode)


def _read_keys(keyboard: int, seconds: float) -> list[str]:
    """Return the names of the keys that are pressed within a time; `q` if the terminal is gone."""
    if not select.select([keyboard], [], [], seconds)[0]:
        return []
    data = os.read(keyboard, 4096)
    if not data:
        return ["q"]
    if data.endswith(b"\x1b") and select.select([keyboard], [], [], ESCAPE_WAIT_S)[0]:
        data += os.read(keyboard, 4096)
    keys = re.findall(r"\x1b\[[0-9;]*[A-Za-z~]|\x1bO[A-Z]|.", data.decode(errors="replace"), re.DOTALL)
    return [KEY_NAMES.get(key, key) for key in keys]


MAX_LINE_CHARS = 4_000
FAR = 1_000_000_000
MARK_COLUMNS = 2

TEXTS = {"enter": "show", "d": "diff", "D": "diff since the seed"}
COMMANDS = {"p": "promote {} -m WHY", "x": "prune {} -m WHY", "X": "prune {} --all -m WHY", "u": "undo"}
HINT = "j k select   b best   Enter show   d D diff   p x u decide   q leave"


class Browser:
    """The state of the screen: which candidate is selected or open, and how far it is scrolled."""

    def __init__(self, place: Place, settings: Settings, message: str = "") -> None:
        self._place = place
        self._settings = settings
        self._message = Text(message, "yellow")
        self._selected: str | None = None  # None: the best, whichever that is
        self._line = 0  # of the lineage on the screen: there the selected candidate stays
        self._opened = ""  # one of TEXTS, of the selected candidate
        self._text: list[Text] = []
        self._top = 0  # the first line of the text in sight
        self._page = 1  # lines of the lineage, or of the text
        self._ids: list[str] = []  # of the lineage, the youngest first
        self._lines: list[Text] = []
        self._view: View

    def read(self, view: View) -> None:
        """Take a new state of the history."""
        history = view.history
        shown = skeleton(history) | history.phylogeny.skeleton([self._selected] if self._selected else [])
        lineage = rows(history, shown) if history.seed else []
        self._view = view
        self._ids = [row.candidate.commit for row in lineage]
        self._lines = row_lines(replace(view, width=(view.width or FAR) - MARK_COLUMNS), lineage)

    @property
    def selected(self) -> str | None:
        """The selected candidate's id."""
        history = self._view.history
        return next((commit for commit in (self._selected, history.best, history.seed) if commit in self._ids), None)

    def press(self, key: str) -> bool:
        """Obey a key. Return False for the one that leaves the screen."""
        self._message = Text()
        if key == "q" and not self._opened:
            return False
        if key in ("q", "escape"):
            self._selected = self._selected if self._opened else None
            self._opened = ""
            return True
        steps = {"up": -1, "down": 1, "page-up": -self._page, "page-down": self._page, "home": -FAR, "end": FAR}
        commit = self.selected
        if commit is None:
            self._message = Text("there is no candidate yet")
        elif key in TEXTS:
            self._open(TEXTS[key], commit)
        elif key in COMMANDS:
            self._message = Text(f"evogit {COMMANDS[key].format(commit[:SHORT])}", "yellow")
        elif self._opened and key in steps:
            self._top += steps[key]
        elif self._opened and key in ("n", "N"):
            self._open(self._opened, self._select(commit, 1 if key == "n" else -1))
        elif key in steps:
            self._select(commit, steps[key])
        elif key == "b":
            self._select(self._view.history.best or commit, 0)
        return True

    def _select(self, commit: str, step: int) -> str:
        """Select the candidate that is `step` rows below another one. Return its id."""
        number = min(max(self._ids.index(commit) + step, 0), len(self._ids) - 1)
        self._line += number - self._ids.index(self.selected or commit)
        self._selected = self._ids[number]
        return self._selected

    def _open(self, kind: str, commit: str) -> None:
        phylogeny = self._view.history.phylogeny
        candidate = phylogeny[commit]
        if kind == "show":
            self._text = list(candidate_lines(self._place, self._view, candidate))
        else:
            parent = next(iter(candidate.parents), commit) if kind == "diff" else self._view.history.seed or commit
            patch = self._place.repository.diff(parent, commit)
            self._text = list(change_lines(self._view, phylogeny[parent], candidate, patch))
        self._opened, self._selected, self._top = kind, commit, 0

    def draw(self, now: Now, width: int, height: int) -> list[Text]:
        """Return the lines of the screen, as many as it is high."""
        commit = self.selected
        about = (
            self._view.line(self._view.history.phylogeny[commit], score=True) if commit else Text("no candidate yet")
        )
        if self._opened:
            top = [Text(f"{self._opened}  ", "bold").append_text(about)]
            body = [part for line in self._text for part in _wrapped(line, width)]
            self._page = max(height - 2, 1)
            self._top = max(min(self._top, len(body) - self._page), 0)
            seen = body[self._top : self._top + self._page]
            where = f"{self._top + 1} to {self._top + len(seen)} of {len(body)}"
            bottom = [self._message or Text(f"j k scroll   Enter show   d diff   n next   q back   {where}", "dim")]
        else:
            gap = [Text("")] if height >= 12 else []
            top = [*facts(self._view, self._settings, now, width)[: max(height - 4, 1)], *gap]
            if height >= 16:
                top += [*agent_lines(self._view, now, max(height // 6, 2)), *gap]
            bottom = [*gap, self._message or about, Text(HINT, "dim")]
            self._page = max(height - len(top) - len(bottom), 1)
            seen = list(self._lineage(commit, width))
        filler = [Text("")] * (self._page - len(seen))
        return fit(self._view, [*top, *seen, *filler, *bottom][:height], width)

    def _lineage(self, selected: str | None, width: int) -> Iterator[Text]:
        """Yield the lines that are in sight; the selected candidate stays on its line while others are added."""
        at = self._ids.index(selected) if selected else 0
        line = min(max(self._line, 0), self._page - 1)
        top = max(min(at - line, len(self._ids) - self._page), 0) if self._selected else 0
        self._line = at - top
        for number, text in enumerate(self._lines[top : top + self._page], top):
            marked = Text(f"> {text.plain}".ljust(width), "reverse")
            yield marked if number == at else Text("  ").append_text(text)


def _wrapped(line: Text, width: int) -> Iterable[Text]:
    line = line[:MAX_LINE_CHARS]
    line.expand_tabs(4)
    if line.cell_len <= width:
        return [line]
    ends = accumulate(map(len, chop_cells(line.plain, width)))
    return line.divide(list(ends)[:-1])
