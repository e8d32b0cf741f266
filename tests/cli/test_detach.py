"""Runs without a terminal: detached, followed, listed, and what happens at their end; real processes throughout."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from evogit.cli.watch import STOPPING
from tests.clock import PATIENCE

from .conftest import EVOGIT, Cli, Small, Story, environment
from .test_run import HOLD

pytestmark = pytest.mark.slow

ENDLESS = ("run", "sine", "--evaluations", "90000")
TELL = 'echo "$EVOGIT_RUN $EVOGIT_REASON $EVOGIT_EXIT $(basename $EVOGIT_REPOSITORY)" >> ended'


@pytest.fixture
def task(cli: Cli, tmp_path: Path) -> Iterator[Path]:
    """A new task; a run of it that is still at work in the end is stopped."""
    cli("new", "sine")
    yield tmp_path / "sine"
    if (tmp_path / "evogit-sine").exists():
        cli("-C", "evogit-sine", "stop")


def wait_for_text(file: Path, last: str = "\n") -> str:
    until = time.monotonic() + PATIENCE
    while not (file.exists() and file.read_text().endswith(last)):
        assert time.monotonic() < until, f"{file} was never written"
        time.sleep(0.05)
    return file.read_text()


def following(folder: Path) -> subprocess.Popen[str]:
    """An `evogit watch` that has seen an evaluation."""
    follower = subprocess.Popen(
        [EVOGIT, "-C", "evogit-sine", "watch"],
        cwd=folder,
        env=environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert follower.stderr
    assert any("  evaluated " in line for line in follower.stderr)
    return follower


def test_a_detached_run_outlives_its_terminal_and_is_followed_to_its_end(
    cli: Cli, script: Cli, task: Path, tmp_path: Path
) -> None:
    ours, theirs = pty.openpty()
    shell = subprocess.Popen(
        ["bash", "-ic", f"{EVOGIT} {' '.join(ENDLESS)} --detach --on-end '{TELL}' > said; sleep {PATIENCE}"],
        cwd=tmp_path,
        env=environment(tmp_path, TERM="xterm"),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    said = wait_for_text(tmp_path / "said", "logs/sine.log\n")
    os.close(ours)  # the terminal is closed
    os.killpg(shell.pid, signal.SIGHUP)
    shell.wait(timeout=PATIENCE)
    assert "evogit -C evogit-sine watch" in said.replace(str(EVOGIT), "evogit")
    (listed,) = cli("status", "--all", "--json").json["runs"]
    assert (listed["run"], len(listed["engines"]), listed["stopped_because"]) == ("sine", 1, None)
    os.kill(int(said.split("process ")[1].split(",")[0]), signal.SIGHUP)
    assert cli(*ENDLESS).code == 4  # the refused one is no news to those who look
    follower = following(tmp_path)
    assert cli("-C", "evogit-sine", "stop").code == 0
    out, _ = follower.communicate(timeout=PATIENCE)
    assert (follower.returncode, "stopped on request" in out) == (0, True), out
    assert wait_for_text(tmp_path / "ended") == "sine asked 0 evogit-sine\n"
    assert "stopped on request" in (tmp_path / "evogit-sine/.git/evogit/logs/sine.log").read_text()
    (listed,) = cli("status", "--all", "--json").json["runs"]
    assert (listed["engines"], listed["stopped_because"]) == ([], "asked")
    again = cli("-C", "evogit-sine", "watch")
    assert (again.code, "stopped on request" in again.out) == (0, True)


def test_an_interrupted_follower_leaves_the_run_and_a_killed_run_ends_it(cli: Cli, task: Path, tmp_path: Path) -> None:
    pid = cli(*ENDLESS, "--detach", "--json").json["pid"]
    for end in ("follower", "run"):
        follower = following(tmp_path)
        if end == "follower":
            follower.send_signal(signal.SIGINT)
            assert "evogit-sine watch`" in follower.communicate(timeout=PATIENCE)[1]
            assert follower.returncode == 130
        else:
            os.kill(pid, signal.SIGKILL)
            assert "not stopped cleanly" in follower.communicate(timeout=PATIENCE)[0]
            assert follower.returncode == 1


def test_what_keeps_a_detached_run_from_beginning_is_said_where_it_was_called(
    cli: Cli, task: Path, tmp_path: Path
) -> None:
    assert "expected a limit" in cli("run", "sine", "--detach").err
    evaluator = task / "evaluator" / "evaluate.py"
    evaluator.write_text("def evaluate(program, split):\n    raise ValueError('no such benchmark')\n")
    done = cli(*ENDLESS, "--detach", "--on-end", TELL)
    assert (done.code, "no such benchmark" in done.err) == (1, True), done.err
    assert wait_for_text(tmp_path / "ended") == "sine error 1 evogit-sine\n"


def test_a_run_that_is_interrupted_while_it_begins_ends_there(cli: Cli, task: Path, tmp_path: Path) -> None:
    held, evaluator = tmp_path / "held", task / "evaluator" / "evaluate.py"
    evaluator.write_text(evaluator.read_text() + HOLD.format(seed="/dev/null", held=str(held)))
    held.touch()
    caller = subprocess.Popen(
        [EVOGIT, *ENDLESS, "--detach"],
        cwd=tmp_path,
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert caller.stderr
    assert any("  proposed " in line for line in caller.stderr)
    caller.send_signal(signal.SIGINT)
    assert any(line.strip() == STOPPING for line in caller.stderr)
    held.unlink()
    out, _ = caller.communicate(timeout=PATIENCE)
    assert (caller.returncode, out) == (130, "")
    assert cli("-C", "evogit-sine", "status", "--json").json["stopped_because"] == "interrupted"


def test_runs_that_are_gone_are_dropped_from_the_list(cli: Cli, task: Path, tmp_path: Path) -> None:
    cli("run", "sine", "--evaluations", "1")
    cli("run", "sine", "--evaluations", "1", "-C", "other")
    assert [each["run"] for each in cli("status", "--all", "--json").json["runs"]] == ["sine", "sine"]
    cli("-C", "evogit-sine", "clean", "sine", "--all", "--yes")
    (tmp_path / "other").rename(tmp_path / "away")
    assert cli("status", "--all", "--json").json["runs"] == []
    assert (tmp_path / ".local/state/evogit/runs.jsonl").read_text() == ""


def test_status_lists_several_runs(cli: Cli, small: Small) -> None:
    Story(small.folder, "second").add(1.0)
    done = cli("-C", "repo", "status")
    assert done.code == 0
    assert [line.split()[0] for line in done.out.splitlines()[1:3]] == ["second", "toy"]
    assert "status --name second" in done.out
    found = cli("-C", "repo", "status", "--json").json["runs"]
    assert [(each["run"], each["evaluated"], each["best"]) for each in found] == [("second", 1, 1.0), ("toy", 7, 2.0)]


def test_the_command_of_the_end_may_fail_and_changes_nothing(cli: Cli, task: Path) -> None:
    done = cli("run", "sine", "--evaluations", "1", "--on-end", "echo no mail here; exit 3")
    assert (done.code, "--on-end ended with 3: no mail here" in done.err) == (0, True), done.err
