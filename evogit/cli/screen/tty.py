"""The terminal itself: taken over and given back, keys read from it, frames written to it."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import termios
import tty
from collections.abc import Iterator, Sequence
from types import FrameType

from evogit.cli.screen.keys import Keys

ENTER = "\x1b[?1049h\x1b[?2004h\x1b[?7l\x1b[?25l\x1b[2J"
"""The other screen, pastes marked as such, no line broken at the margin, no cursor."""

LEAVE = "\x1b[0m\x1b[?25h\x1b[?7h\x1b[?2004l\x1b[?1049l"

ESCAPE_WAIT = 0.05
"""Seconds after which an escape is a key, and not the beginning of one: over ssh a sequence may come in pieces."""

USUAL = 80, 24
"""Columns and rows of a terminal that does not tell."""

MOST = 4096
"""Bytes that are read at once."""


class Ended(SystemExit):
    """A signal asks for the end."""


class Screen:
    """A terminal that is taken over between `__enter__` and `__exit__`, whatever happens between them."""

    def __init__(self) -> None:
        self._input = sys.stdin.fileno()
        self._output = sys.stdout.fileno()
        self._keys = Keys()
        self._shown: list[str] = []
        self._cursor = ""
        self._stack = contextlib.ExitStack()
        self.resized = True

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows."""
        size = os.get_terminal_size(self._output)
        return size.columns or USUAL[0], size.lines or USUAL[1]

    def measure(self) -> tuple[int, int]:
        """The size for the next frame, which is written whole if it is another one."""
        if self.resized:
            self.resized = False
            self._shown = []
        return self.size

    def __enter__(self) -> Screen:
        """Take the terminal over.

        Raises:
            termios.error: it is none.
        """
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._signals())
            stack.enter_context(self._waking())
            self._before = termios.tcgetattr(self._input)
            stack.callback(self._leave)
            self._take_over()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        """Give it back as it was."""
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)  # a second one must not leave it half restored
        self._stack.close()

    def _take_over(self) -> None:
        tty.setcbreak(self._input, termios.TCSANOW)
        self._write(ENTER)
        self.resized = True

    def _leave(self) -> None:
        with contextlib.suppress(OSError, termios.error):  # it is gone
            termios.tcsetattr(self._input, termios.TCSANOW, self._before)
            self._write(LEAVE)

    # --- signals --------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        acts = {
            signal.SIGTERM: _end,
            signal.SIGHUP: _end,
            signal.SIGQUIT: _end,
            signal.SIGWINCH: self._resize,
            signal.SIGTSTP: self._suspend,
        }
        before = {number: signal.signal(number, act) for number, act in acts.items()}
        before[signal.SIGINT] = signal.getsignal(signal.SIGINT)
        try:
            yield
        finally:
            for number, act in before.items():
                signal.signal(number, act)

    @contextlib.contextmanager
    def _waking(self) -> Iterator[None]:
        """Have a signal end a wait: Python goes on with a `select` that one interrupted."""
        self._wake, wakes = os.pipe()
        for end in (self._wake, wakes):
            os.set_blocking(end, False)
        before = signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(before)
            os.close(self._wake)
            os.close(wakes)

    def _resize(self, number: int, frame: FrameType | None) -> None:
        self.resized = True

    def _suspend(self, number: int, frame: FrameType | None) -> None:
        """Ctrl-Z: give the terminal back, sleep, and take it over again."""
        self._leave()
        signal.raise_signal(signal.SIGSTOP)
        self._take_over()

    # --- keys and frames ------------------------------------------------------------------------------------------

    def keys(self, seconds: float) -> list[str]:
        """The keys that are pressed within a time; returns early with the first, or when a signal came.

        Raises:
            Ended: nobody will press any more.
        """
        ready, _, _ = select.select([self._input, self._wake], [], [], max(seconds, 0.0))
        if self._wake in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake, MOST)
        if self._input not in ready:
            return []
        found = self._read()
        while self._keys.waiting:
            more, _, _ = select.select([self._input], [], [], ESCAPE_WAIT)
            found += self._read() if more else self._keys.flush()
        return found

    def _read(self) -> list[str]:
        data = os.read(self._input, MOST)
        if not data:
            raise Ended(0)
        return self._keys.feed(data)

    def show(self, rows: Sequence[str], cursor: tuple[int, int] | None = None) -> None:
        """Write the rows that are not there already; the cursor is shown at a place (row, column), or not at all."""
        whole = len(rows) != len(self._shown)
        changed = [number for number, row in enumerate(rows) if whole or row != self._shown[number]]
        text = "\x1b[2J" * whole + "".join(f"\x1b[{number + 1};1H\x1b[2K{rows[number]}" for number in changed)
        ended = f"\x1b[{cursor[0] + 1};{cursor[1] + 1}H\x1b[?25h" if cursor else "\x1b[?25l"
        if text or ended != self._cursor:
            self._write(f"\x1b[?25l{text}{ended}" if cursor and text else text + ended * (ended != self._cursor))
        self._shown = list(rows)
        self._cursor = ended

    def _write(self, text: str) -> None:
        data = text.encode(sys.stdout.encoding or "utf-8", "backslashreplace")
        while data:
            data = data[os.write(self._output, data) :]


def _end(number: int, frame: FrameType | None) -> None:
    raise Ended(128 + number)
