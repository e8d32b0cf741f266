"""What a terminal shows of what is wider than it: prose goes on below, and only what is drawn is cut."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import termios
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.text import Text

from evogit.cli.terminal import Terminal

from .conftest import Forked, Story, environment

REASON = "the command ended with exit code 1: expected a table with three columns, and got one with just two of them"
TITLE = "corner circles first and then all of the others, ordered by their size"

Shown = Callable[..., list[str]]


@pytest.fixture
def shown(tmp_path: Path) -> Shown:
    """What appears on a terminal that is so wide when a command is run there."""

    def show(columns: int, *arguments: str, cwd: Path) -> list[str]:
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 200, columns, 0, 0))
        everywhere = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
        env = environment(tmp_path, TERM="xterm", PAGER="cat", NO_COLOR="1")
        child = Forked(arguments, cwd=cwd, env=env, start_new_session=True, **everywhere)
        os.close(theirs)
        said = b""
        try:
            while part := os.read(ours, 4096):
                said += part
        except OSError:  # the command has ended
            pass
        child.wait()
        os.close(ours)
        return re.sub(rb"\x1b\[[0-9;?]*[a-zA-Z]", b"", said).decode().replace("\r", "").splitlines()

    return show


@pytest.fixture
def story(tmp_path: Path) -> Story:
    story = Story(tmp_path / "repo")
    seed = story.add(1.0, title="Seed", holdout=1.1)
    story.add(None, seed, reason=REASON)
    story.add(1.7, seed, title=TITLE, adopt=True, holdout=1.0)
    story.stop()
    return story


@pytest.mark.parametrize("command", ["status", "report", "show best", "diff", "doctor", "prune best -m x --dry-run"])
def test_what_a_person_reads_is_not_cut(shown: Shown, story: Story, command: str) -> None:
    lines = shown(60, *command.split(), cwd=story.folder)
    assert lines
    assert "…" not in "".join(lines)
    assert max(map(len, lines)) <= 60 or command == "diff"  # whose lines of code are as they are


def test_errors_break_between_words(shown: Shown, story: Story) -> None:
    lines = shown(40, "show", "nosuchcandidate", cwd=story.folder)
    assert len(lines) > 2
    assert max(map(len, lines)) <= 40
    assert "expected best, seed, an agent (a1, a2) or the beginning of an id" in " ".join(map(str.strip, lines))
    wrong = " ".join(map(str.strip, shown(30, "log", "-n", "many", cwd=story.folder)))
    assert "Invalid value for '-n': 'many' is not a valid integer" in wrong


@pytest.mark.parametrize(
    "said", ["plain", "a\tb", "two\nlines", "bell\x07 [bold]no markup[/]", Text("dim \tone", "dim"), ""]
)
def test_what_is_said_to_no_terminal_is_what_rich_would_write(
    said: str | Text, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    terminal = Terminal("auto", json=False)
    terminal.note(said)
    ours = capsys.readouterr().err
    terminal.err.print(said if isinstance(said, Text) else Text(said), soft_wrap=True)
    assert ours == capsys.readouterr().err


def test_an_error_is_told_on_a_terminal_that_does_not_know_its_size(shown: Shown, tmp_path: Path) -> None:
    said = "\n".join(shown(0, "run", "nosuch", cwd=tmp_path))
    assert "no task nosuch" in said
    assert "Traceback" not in said
