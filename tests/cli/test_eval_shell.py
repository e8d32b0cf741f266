"""`evogit check --uncommitted` on work that is not committed, and `evogit shell` inside the sandbox."""

from __future__ import annotations

import os
from pathlib import Path
from subprocess import PIPE

import pytest

from tests.conftest import PROGRAM, write_task
from tests.plain_git import git

from .conftest import Cli, Forked, environment
from .test_run import Screen


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


def restored(folder: Path) -> Path:
    """The repository as it was committed."""
    git(folder, "checkout", "-q", ".")
    return folder


@pytest.mark.slow
def test_eval_judges_what_is_not_committed_and_records_nothing(cli: Cli, mine: Path) -> None:
    cli("run", "--evaluations", "1", "--sandbox", "none", cwd=mine)
    assert cli("check", "--uncommitted", "--sandbox", "none", "--json", cwd=mine).json["changed"] == []
    (mine / "program.py").write_text(PROGRAM.replace("C = 3.0", "C = 20.0"))
    (mine / "extra").mkdir()
    (mine / "extra" / "more.py").write_text("MORE = 1\n")
    (mine / "extra" / "kept.log").write_text("ignored\n")
    (mine / "extra" / "passwd").symlink_to("/etc/passwd")
    os.mkfifo(mine / "extra" / "pipe")
    (mine / "notes.txt").write_text("mine alone\n")
    before = state(mine)
    done = cli("check", "--uncommitted", "--sandbox", "none", "--json", cwd=mine)
    assert done.code == 0
    judged = done.json
    assert judged["changed"] == ["extra/more.py", "program.py"]
    assert (judged["protected"], judged["left_out"]) == ([], ["extra/passwd", "notes.txt"])
    assert (judged["status"], judged["split"]) == ("ok", "train")
    assert judged["metrics"]["score"] > judged["seed"]["score"]
    assert list(judged["cases"]) == ["x=1", "x=2"]
    text = cli("check", "--uncommitted", "--sandbox", "none", "--split", "holdout", cwd=mine / "extra")
    assert "ok on holdout" in text.out
    assert "left out, as they are no candidate's to add: extra/passwd, notes.txt" in text.err
    assert state(mine) == before


@pytest.mark.slow
def test_eval_reads_no_more_than_a_sandbox_may_hold(cli: Cli, mine: Path) -> None:
    with (mine / "data").open("w") as data:
        data.truncate(1 << 40)
    done = cli("check", "--uncommitted", "--sandbox", "none", cwd=mine)
    assert (done.code, "left out, as they are no candidate's to add: data" in done.err) == (0, True), done.err
    (mine / "extra").mkdir()
    (mine / "data").rename(mine / "extra" / "data.py")
    done = cli("check", "--uncommitted", "--sandbox", "none", cwd=mine)
    assert done.code == 4
    assert "as [sandbox] disk allows, got more with extra/data.py" in done.err


@pytest.mark.slow
def test_eval_refuses_protected_changes_unless_they_may_be_left_out(cli: Cli, mine: Path) -> None:
    (mine / "README").unlink()
    (mine / "tool.sh").chmod(0o755)
    (mine / "program.py").write_text("def value(x):\n    raise OSError('\x1b[2J no')\n")
    done = cli("check", "--uncommitted", "--sandbox", "none", cwd=mine)
    assert done.code == 4
    assert "README, tool.sh" in done.err
    done = cli("check", "--uncommitted", "--sandbox", "none", "--force", cwd=mine)
    assert done.code == 1
    assert "left out, as they are protected: README, tool.sh" in done.err
    assert "crashed on train" in done.out
    assert "\x1b" not in done.out
    assert "ok on lite" in cli("check", "--uncommitted", "--split", "lite", "--sandbox", "none", cwd=restored(mine)).out
    assert cli("check", "--uncommitted", "nowhere", cwd=mine).code == 3


def test_a_folder_is_evaluated_by_a_task_of_which_there_is_no_run(cli: Cli, tmp_path: Path) -> None:
    task = write_task(tmp_path / "task")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "program.py").write_text(PROGRAM.replace("C = 3.0", "C = 20.0"))
    done = cli("check", "work", "--uncommitted", "--task", str(task), "--sandbox", "none", "--json")
    assert (done.code, done.json["status"], done.json["changed"]) == (0, "ok", ["program.py"])
    assert sorted(path.name for path in tmp_path.glob("[!.]*")) == ["task", "work"]


@pytest.mark.slow
def test_eval_takes_an_exported_folder_of_a_task_that_is_elsewhere(cli: Cli, tmp_path: Path) -> None:
    write_task(tmp_path / "task")
    cli("run", "task", "--evaluations", "1", "--sandbox", "none")
    assert cli("-C", "evogit-tiny", "export", "seed", "out").code == 0
    (tmp_path / "out" / "program.py").write_text(PROGRAM.replace("C = 3.0", "C = 20.0"))
    done = cli("check", "--uncommitted", "out", "--task", "task", "--sandbox", "none", "--json")
    assert done.code == 0
    assert done.json["changed"] == ["program.py"]
    assert cli("-C", "evogit-tiny", "check", "--uncommitted", "out", "--sandbox", "none").code == 2


@pytest.fixture
def toy(cli: Cli, tmp_path: Path) -> Path:
    """A run of the small task."""
    write_task(tmp_path / "task")
    cli("run", "task", "--evaluations", "1", "--sandbox", "none")
    return tmp_path


BOX = ("shell", "seed", "--task", "task", "--sandbox")


@pytest.mark.slow
def test_shell_runs_a_command_inside_and_ends_as_it_does(cli: Cli, toy: Path) -> None:
    done = cli(*BOX, "bubblewrap", "--", "sh", "-c", "cat program.py; pwd; echo no >&2; touch x; exit 7")
    assert (done.code, done.out, done.err) == (7, PROGRAM + "/box/work\n", "no\n")
    done = cli(*BOX, "bubblewrap", "--json", "--", "sh", "-c", "kill -9 $$")
    assert (done.code, done.json["signal"]) == (137, 9)
    assert cli(*BOX, "bubblewrap").code == cli(*BOX, "bubblewrap", "--json").code == 2


@pytest.mark.slow
def test_shell_takes_many_commands_from_its_input(toy: Path) -> None:
    box = Forked([*BOX, "bubblewrap", "--", "sh"], cwd=toy, env=environment(toy), stdin=PIPE, stdout=PIPE)
    assert box.communicate("echo $((6 * 7))\ncat program.py\nexit 5\n")[0] == "42\n" + PROGRAM
    assert box.returncode == 5


@pytest.mark.slow
def test_shell_prints_nothing_that_a_terminal_obeys(toy: Path) -> None:
    screen = Screen(*BOX, "bubblewrap", "--", "printf", "a\\033[2Jb", cwd=toy)
    assert screen.end() == 0
    assert "a\\x1b[2Jb" in screen.text
    assert "\x1b[2J" not in screen.text
