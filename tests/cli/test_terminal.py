"""What a terminal shows of what is wider than it: prose goes on below, and only what is drawn is cut."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from evogit.cli.terminal import Terminal

from .conftest import Cli, Story
from .test_run import Screen

REASON = "the command ended with exit code 1: expected a table with three columns, and got one with just two of them"
TITLE = "corner circles first and then all of the others, ordered by their size"


def shown(columns: int, *arguments: str, cwd: Path) -> list[str]:
    """The lines that a command prints on a terminal of this width."""
    screen = Screen(*arguments, cwd=cwd, size=(200, columns), PAGER="cat", NO_COLOR="1")
    screen.end()
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", screen.text).replace("\r", "").splitlines()


@pytest.fixture
def story(tmp_path: Path) -> Story:
    story = Story(tmp_path / "repo")
    seed = story.add(1.0, title="Seed", holdout=1.1)
    story.add(None, seed, reason=REASON)
    story.add(1.7, seed, title=TITLE, adopt=True, holdout=1.0)
    story.stop()
    return story


@pytest.mark.parametrize("command", ["status", "report", "show best", "diff", "doctor", "prune best -m x --dry-run"])
def test_what_a_person_reads_is_not_cut(story: Story, command: str) -> None:
    lines = shown(60, *command.split(), cwd=story.folder)
    assert lines
    assert "…" not in "".join(lines)
    assert max(map(len, lines)) <= 60 or command == "diff"  # whose lines of code are as they are


def test_errors_break_between_words(story: Story) -> None:
    lines = shown(40, "show", "nosuchcandidate", cwd=story.folder)
    assert len(lines) > 2
    assert max(map(len, lines)) <= 40
    assert "expected best, seed, an agent (a1, a2) or the beginning of an id" in " ".join(map(str.strip, lines))
    wrong = " ".join(map(str.strip, shown(30, "log", "-n", "many", cwd=story.folder)))
    assert "Invalid value for '-n': 'many' is not a valid integer" in wrong


def test_an_error_is_told_on_a_terminal_that_does_not_know_its_size(tmp_path: Path) -> None:
    said = "\n".join(shown(0, "run", "nosuch", cwd=tmp_path))
    assert "no task nosuch" in said
    assert "Traceback" not in said


def test_what_takes_long_is_said_to_go_on(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evogit.cli.terminal.FIRST_WORD_S", 0.01)

    async def work() -> int:
        await asyncio.sleep(0.1)
        return 7

    assert Terminal("never", json=False).run(work(), "evaluating") == 7
    assert "still evaluating" in capsys.readouterr().err


def test_a_terminal_with_ascii_alone_shows_signs_as_wide_as_they_are(story: Story, script: Cli) -> None:
    story.add(3.0, story.history.best or "", title="merge a × b")
    done = script("log", cwd=story.folder, LC_ALL="C", LANG="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert "merge a x b" in done.out
