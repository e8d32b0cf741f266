"""`evogit eval` on work that is not committed, and `evogit shell` inside the sandbox."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ..conftest import PROGRAM, write_task
from .conftest import Cli

GIT = ("git", "-c", "user.name=x", "-c", "user.email=x@x.invalid")


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run([*GIT, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


def state(folder: Path) -> list[str]:
    """What plain Git shows of a repository."""
    return [git(folder, *command.split(" ")) for command in ("for-each-ref", "status --porcelain", "config -l")]


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A person's repository with an evogit.toml and a run of the seed alone."""
    folder = write_task(tmp_path / "mine")
    (folder / "seed" / "program.py").rename(folder / "program.py")
    (folder / "task.toml").rename(folder / "evogit.toml")
    (folder / "README").write_text("about\n")
    (folder / "tool.sh").write_text("#!/bin/sh\n")
    (folder / ".gitignore").write_text("*.log\n")
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "mine")
    return folder


@pytest.mark.slow
def test_eval_judges_what_is_not_committed_and_records_nothing(script: Cli, cli: Cli, mine: Path) -> None:
    script("run", "--evaluations", "1", "--sandbox", "none", cwd=mine)
    assert cli("eval", "--sandbox", "none", "--json", cwd=mine).json["changed"] == []
    (mine / "program.py").write_text(PROGRAM.replace("C = 3.0", "C = 20.0"))
    (mine / "extra").mkdir()
    (mine / "extra" / "more.py").write_text("MORE = 1\n")
    (mine / "extra" / "kept.log").write_text("ignored\n")
    (mine / "extra" / "passwd").symlink_to("/etc/passwd")
    os.mkfifo(mine / "extra" / "pipe")
    (mine / "notes.txt").write_text("mine alone\n")
    before = state(mine)
    done = cli("eval", "--sandbox", "none", "--json", cwd=mine)
    assert done.code == 0
    judged = done.json
    assert judged["changed"] == ["extra/more.py", "program.py"]
    assert (judged["protected"], judged["left_out"]) == ([], ["extra/passwd", "notes.txt"])
    assert (judged["status"], judged["split"]) == ("ok", "train")
    assert judged["metrics"]["score"] > judged["seed"]["score"]
    assert list(judged["cases"]) == ["x=1", "x=2"]
    text = cli("eval", "--sandbox", "none", "--split", "holdout", cwd=mine / "extra")
    assert "ok on holdout" in text.out
    assert "left out, as they are no candidate's to add: extra/passwd, notes.txt" in text.err
    assert state(mine) == before


@pytest.mark.slow
def test_eval_refuses_protected_changes_unless_they_may_be_left_out(script: Cli, cli: Cli, mine: Path) -> None:
    (mine / "README").unlink()
    (mine / "tool.sh").chmod(0o755)
    (mine / "program.py").write_text("def value(x):\n    raise OSError('\x1b[2J no')\n")
    done = cli("eval", "--sandbox", "none", cwd=mine)
    assert done.code == 4
    assert "README, tool.sh" in done.err
    done = cli("eval", "--sandbox", "none", "--any", cwd=mine)
    assert done.code == 1
    assert "left out, as they are protected: README, tool.sh" in done.err
    assert "crashed on train" in done.out
    assert "\x1b" not in done.out
    assert cli("eval", "--split", "none", cwd=mine).code == 2
    assert cli("eval", "nowhere", cwd=mine).code == 3


@pytest.mark.slow
def test_eval_takes_an_exported_folder_of_a_task_that_is_elsewhere(script: Cli, cli: Cli, tmp_path: Path) -> None:
    write_task(tmp_path / "task")
    script("run", "task", "--evaluations", "1", "--sandbox", "none")
    assert cli("-C", "evogit-tiny", "export", "seed", "out").code == 0
    (tmp_path / "out" / "program.py").write_text(PROGRAM.replace("C = 3.0", "C = 20.0"))
    done = cli("eval", "out", "--task", "task", "--sandbox", "none", "--json")
    assert done.code == 0
    assert done.json["changed"] == ["program.py"]
    assert cli("-C", "evogit-tiny", "eval", "out", "--sandbox", "none").code == 2
