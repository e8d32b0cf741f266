"""`watch` in a real pseudo-terminal, seen through an emulator of one."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyte
import pytest

from tests.clock import wait_until

from .conftest import Cli, Small, Story, become_evogit, environment

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x1b[31m \u202eevil \x9b31m"


class Watcher:
    """`evogit watch` as the process that a terminal of some size belongs to."""

    def __init__(self, folder: Path, *arguments: str, size: tuple[int, int] = (80, 24), **env: str) -> None:
        self._screen = pyte.Screen(*size)
        self._stream = pyte.ByteStream(self._screen)
        self.said = b""
        self.code: int | None = None
        looked, look = os.pipe()
        self.pid, self._ours = pty.fork()
        if not self.pid:
            os.read(looked, 1)  # until the terminal's mode is known
            become_evogit(
                ["-C", str(folder), "watch", *arguments],
                str(folder),
                environment(folder, **{"TERM": "xterm-256color", **env}),
            )
        self.resize(*size)
        self.before = termios.tcgetattr(self._ours)
        os.write(look, b"\0")
        for end in (looked, look):
            os.close(end)

    def resize(self, width: int, height: int) -> None:
        """Another size of the terminal."""
        self._screen.resize(height, width)
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def type(self, keys: str) -> None:
        """What a person types."""
        os.write(self._ours, keys.encode())

    @property
    def lines(self) -> list[str]:
        """What is seen, after all that was written by now."""
        while select.select([self._ours], [], [], 0)[0]:
            try:
                data = os.read(self._ours, 65536)
            except OSError:  # it ended, and with it the other side
                break
            if not data:
                break
            self.said += data
            self._stream.feed(data)
        return [line.rstrip() for line in self._screen.display]

    def sees(self, *texts: str) -> None:
        """Wait until all these are seen at once."""

        def seen() -> bool:
            found = "\n".join(self.lines)
            there = all(text in found for text in texts)
            assert there or not os.waitpid(self.pid, os.WNOHANG)[0], f"it ended with: {found}"
            return there

        wait_until(seen, f"{texts} on the screen")

    @property
    def mode(self) -> list[object]:
        """The mode of the terminal: echo, whole lines and so on."""
        return termios.tcgetattr(self._ours)

    def ended(self) -> int:
        """Wait until the process has ended; its exit code, the last of what it said read."""

        def over() -> bool:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            _ = self.lines  # after that: it may say something until it ends
            self.code = os.waitstatus_to_exitcode(status) if pid else None
            return bool(pid)

        wait_until(over, "the end of watch")
        assert self.code is not None
        return self.code

    def close(self) -> None:
        """End it, if it goes on."""
        if self.code is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self._ours)


Watch = Callable[..., Watcher]


@pytest.fixture
def watch() -> Iterator[Watch]:
    """Watches a run in a terminal of its own."""
    with ExitStack() as stack:

        def begin(folder: Path, *arguments: str, **options: object) -> Watcher:
            watcher = Watcher(folder, *arguments, **options)  # type: ignore[arg-type]
            stack.callback(watcher.close)
            return watcher

        yield begin


@contextmanager
def restored(watcher: Watcher) -> Iterator[None]:
    """The terminal ends as it was before."""
    wait_until(lambda: watcher.mode != watcher.before, "keys that are read one by one")
    yield
    watcher.ended()
    assert watcher.mode == watcher.before
    assert watcher.said.count(b"\x1b[?1049h") == watcher.said.count(b"\x1b[?1049l") == 1
    assert watcher.said.rindex(b"\x1b[?25h") > watcher.said.rindex(b"\x1b[?25l")


def test_a_candidate_is_opened_and_the_terminal_is_left_as_it_was(watch: Watch, small: Small) -> None:
    watcher = watch(small.folder)
    watcher.sees("toy · stopped", "best    2.0000", small.merge[:7], "★─╮", "q leave")
    with restored(watcher):
        watcher.type("j")
        watcher.sees(f"● {small.right[:7]}  1.6000  adaptive step size")
        watcher.type("\r")
        watcher.sees(f"show  ● {small.right[:7]}", "by        a2, mutation")
        watcher.type("d")
        watcher.sees("diff", "+VALUE = 4")
        watcher.type("\x1b")
        watcher.sees("q leave")
        watcher.type("p")
        watcher.sees(f"promote {small.right[:7]}")
        watcher.type("q")
    assert watcher.code == 0


def test_new_candidates_show_whatever_they_hold_and_whatever_the_size(watch: Watch, small: Small) -> None:
    story = Story(small.folder)
    watcher = watch(small.folder)
    watcher.sees("best    2.0000")
    files = {"main.py": HOSTILE.encode() + b"x" * 50_000 + b"\n"}
    story.add(2.5, small.merge, title=HOSTILE, files=files, adopt=True, made={"transcript.txt": HOSTILE.encode()})
    watcher.sees("best    2.5000", r"\x1b]0;owned\x07\x1b[2J")
    watcher.type("\r")
    watcher.sees("show  ★", "by        a1")
    watcher.type("d")
    watcher.sees("diff  ★", r"+\x1b]0;owned")
    watcher.type("q")
    for width, height in ((140, 40), (30, 8), (80, 24)):
        watcher.resize(width, height)
        wait_until(lambda: any("j k select" in line for line in watcher.lines), "a new frame")
        assert len(watcher.lines) == height
    watcher.sees("best    2.5000")
    assert b"owned\x07" not in watcher.said
    assert not {"\u202e", "\x9b"} & set(watcher.said.decode())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_it_and_the_terminal_is_as_it_was(watch: Watch, small: Small, number: int) -> None:
    watcher = watch(small.folder)
    watcher.sees("best    2.0000")
    with restored(watcher):
        os.kill(watcher.pid, number)
    assert watcher.code == 128 + number


def test_control_z_gives_the_terminal_back_until_the_watch_goes_on(watch: Watch, small: Small) -> None:
    watcher = watch(small.folder)
    watcher.sees("best    2.0000")
    watcher.type("\x1a")
    wait_until(lambda: os.waitpid(watcher.pid, os.WNOHANG | os.WUNTRACED)[0], "sleep")
    assert watcher.mode == watcher.before
    os.kill(watcher.pid, signal.SIGCONT)
    watcher.type("j")
    watcher.sees(f"● {small.right[:7]}  1.6000  adaptive step size")
    assert watcher.mode != watcher.before


def test_a_removed_run_ends_the_watch(watch: Watch, small: Small, cli: Cli) -> None:
    watcher = watch(small.folder)
    watcher.sees("best    2.0000")
    with restored(watcher):
        assert cli("clean", "toy", "--all", "--yes", cwd=small.folder).code == 0
    assert watcher.code == 1
    assert b"evogit: the journal of" in watcher.said


def test_an_idle_screen_is_not_drawn_again_and_no_color_is_heeded(watch: Watch, small: Small) -> None:
    watcher = watch(small.folder, NO_COLOR="1")
    watcher.sees("best    2.0000", "> 2.0000", "q leave")
    before = len(watcher.said)
    time.sleep(1.0)
    watcher.sees("q leave")
    assert len(watcher.said) == before
    assert b"\x1b[1m" not in watcher.said


def test_without_a_terminal_the_end_of_the_run_is_printed(small: Small, cli: Cli) -> None:
    followed = cli("watch", cwd=small.folder)
    assert (followed.code, small.merge[:7] in followed.out) == (0, True)
    told = cli("watch", "--json", cwd=small.folder).json
    assert (told["run"], told["doing"], told["forecast"]) == ("toy", None, None)
    assert cli("watch", "other", cwd=small.folder).code != 0
