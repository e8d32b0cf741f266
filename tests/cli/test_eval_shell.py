"""`evogit check --uncommitted` on work that is not committed, and `evogit shell` inside the sandbox."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import subprocess
from pathlib import Path

import pytest

from tests.conftest import PROGRAM, write_task
from tests.plain_git import git

from .conftest import EVOGIT, Cli, Forked, become_evogit, environment


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
    assert cli(*BOX, "none").code == 4
    assert cli(*BOX, "bubblewrap", "--json").code == 2


@pytest.mark.slow
def test_shell_without_a_command_takes_them_from_its_input(toy: Path) -> None:
    said = b"echo $((6 * 7))\nx=1\nls program.py\ncat missing\nseq 100000\nexit 5\n"
    done = subprocess.run([EVOGIT, *BOX, "bubblewrap"], cwd=toy, env=environment(toy), input=said, capture_output=True)
    assert done.returncode == 5, done.stderr
    assert done.stdout.startswith(b"42\nprogram.py\ncat: ")
    assert done.stdout.endswith(b"\n99999\n100000\n")
    assert b"changes are not kept" in done.stderr


CTRL_C = b"\x03"


def on_a_terminal(toy: Path, sandbox: str, *keys: bytes) -> tuple[int, bytes]:
    """Type `keys` at `evogit shell`, each after the prompt; its exit code and all that the terminal showed.

    Ctrl-C is typed after the line `going` instead. After the last one, at the next prompt, it is terminated.
    """
    pid, master = pty.fork()
    if not pid:
        daemon = {name: value for name, value in os.environ.items() if name.startswith("DOCKER_")}
        become_evogit([*BOX, sandbox], toy, environment(toy, TERM="xterm", **daemon))
    shown, typed = b"", list(keys)
    with contextlib.suppress(OSError):
        while data := os.read(master, 4096):
            shown += data
            if shown.endswith(b"\ngoing\r\n" if typed[:1] == [CTRL_C] else b"sandbox$ "):
                if typed:
                    os.write(master, typed.pop(0))
                else:
                    os.kill(pid, signal.SIGTERM)
    os.close(master)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown


@pytest.mark.slow
def test_shell_carries_more_than_its_buffers_hold_in_both_directions(toy: Path) -> None:
    line = 74 * "x" + "\n"
    said = 50_000 * ("echo " + line)
    box = Forked([*BOX, "bubblewrap"], cwd=toy, env=environment(toy), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert box.communicate(said) == (50_000 * line, None)
    assert box.returncode == 0


@pytest.mark.slow
def test_shell_on_a_terminal_without_one_inside_still_prompts(toy: Path) -> None:
    code, shown = on_a_terminal(toy, "bubblewrap", b"printf 'a\\033[2Jb\\n'\n", b"\x04")
    assert code == 0
    assert b"a\\x1b[2Jb" in shown
    assert b"job control" not in shown
    assert b"\x1b[2J" not in shown
    assert on_a_terminal(toy, "bubblewrap", b"true\n")[0] == 128 + signal.SIGTERM


@pytest.mark.slow
@pytest.mark.docker
def test_shell_in_a_container_has_a_terminal_of_its_own(toy: Path) -> None:
    code, shown = on_a_terminal(
        *(toy, "docker", b"stty size; test -t 0 && echo yes-it-is\n"),
        *(b"sh -c 'echo going; sleep 100'\n", CTRL_C, b"exit 3\n"),
    )
    assert code == 3, shown
    assert b"\nyes-it-is" in shown
    assert b"24 80" in shown
