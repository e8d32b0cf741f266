"""`evogit watch`: a run on the screen, as it goes on; without a terminal, a line per event until it ends."""

from __future__ import annotations

import os
import re
import select
import shutil
import signal
import sys
import termios
import threading
import time
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import click
from rich.console import Group
from rich.live import Live

from evogit.cli.browser import Browser
from evogit.cli.hooks import INTERRUPTED
from evogit.cli.lines.summary import ending_of_others
from evogit.cli.lines.view import StillView
from evogit.cli.locate_run import Place, find_repository, open_place, run_at_work
from evogit.cli.options.shared import name_option, with_repo, with_terminal
from evogit.cli.screen import Now
from evogit.cli.terminal import Terminal
from evogit.cli.watch import INTERVAL_S, EventLines
from evogit.core import Entry, UsageError
from evogit.review import last_settings, status_record
from evogit.review.forecast import Pace, doing, forecast_record
from evogit.review.run_list import RunList
from evogit.review.runs import origin_notes

MAX_CPU_SHARE = 0.2
"""Of one core, for drawing: a run with many candidates is drawn less often."""

EXIT_CODE_WAIT_S = 10.0
"""How long the exit code of an ended run is waited for, while its process prints its summary."""

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
@click.option("--once", is_flag=True, help="Print one frame and end, even if the run goes on.")
@name_option
@with_repo
@with_terminal
def watch(repo: str | None, name: str | None, terminal: Terminal, run: str | None, once: bool) -> None:
    """Watch RUN, which any process may work on, and print how it ended.

    On a terminal it fills the screen: the best so far, the budget, the agents, and the lineage as it grows. The arrow
    keys (or j, k, Page Up, Page Down, g, G, b for the best) select a candidate, Enter shows it, d its change, D its
    change since the seed, n and N the next ones, Esc goes back. `q` and Ctrl-C leave the run alone.

    Without a terminal it prints a line per event until the run ends. The exit code is that of the run if it is over.
    """
    if run is not None and name not in (None, run):
        raise UsageError(f"expected one run, got {run} and --name {name}")
    place = open_place(repo, run or name or run_at_work(find_repository(repo)))
    if once:
        _once(place, terminal)
        return
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
        terminal.data(status_record(place.repository, place.history))
    elif over:
        terminal.show(ending_of_others(place, terminal))
    else:
        terminal.note(f"{place.history.run} goes on; `{place.hint('watch')}` follows it again")
    sys.exit(INTERRUPTED if interrupted else _exit_code(place) if over else 0)


attach = watch


def _once(place: Place, terminal: Terminal) -> None:
    """Print one frame, or the state of the run, its agents and its forecast as JSON."""
    now = _now(place)
    if terminal.json:
        forecast = forecast_record(place, Pace(place.history), now.time)
        record = status_record(place.repository, place.history)
        terminal.data({**record, "doing": now.agents, "forecast": forecast})
        return
    size = shutil.get_terminal_size((80, 24))
    browser = Browser(place, last_settings(place.history))
    browser.read(StillView(place.history, terminal.glyphs, now.time, size.columns))
    terminal.print(browser.draw(now, size.columns, size.lines))


def _now(place: Place) -> Now:
    agents = doing(place.repository, place.history)
    began = place.repository.engines(place.history.run).since() if agents is not None else None
    return Now(time=time.time(), agents=agents, began=began)


# --- without a terminal -------------------------------------------------------------------------------------------


def _follow(place: Place, terminal: Terminal) -> None:
    """Print each event until no engine is at work."""
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


# --- on a terminal ------------------------------------------------------------------------------------------------


def _browse(place: Place, terminal: Terminal) -> None:
    """Draw the run and obey keys until the user leaves."""
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
                browser.read(StillView(place.history, terminal.glyphs, now.time, width))
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
