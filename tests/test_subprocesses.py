"""Programs that are started here end in time, with all that they started, and never outlive who started them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evogit.subprocesses import TooLongError, leash, python, run_child

ENV = {"PATH": os.environ["PATH"]}

BUSY = "while :; do :; done"

HOST = """
import os, sys
from evogit.subprocesses import run_child
run_child(["sh", "-c", sys.argv[1]], seconds=60, env={"PATH": os.environ["PATH"]})
"""


def told(file: Path) -> int:
    """The number of a process, once it has told it."""
    while not (file.exists() and file.read_text().endswith("\n")):
        time.sleep(0.01)
    return int(file.read_text())


def await_end(process: int) -> None:
    """Wait until there is no such process; a zombie that nobody awaits is none any more."""
    stat = Path(f"/proc/{process}/stat")
    while stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z":
        time.sleep(0.01)


def test_input_and_output_go_through() -> None:
    done = run_child(["sh", "-c", "cat; echo told >&2; exit 3"], seconds=5, env=ENV, stdin=b"x" * 200_000)
    assert (done.stdout, done.stderr, done.returncode) == (b"x" * 200_000, b"told\n", 3)


def test_a_missing_program_is_one() -> None:
    with pytest.raises(FileNotFoundError):
        run_child(["no-such-program"], seconds=1, env=ENV)


@pytest.mark.slow
def test_what_burns_cpu_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    with pytest.raises(TooLongError, match="sh took more than 0.5 s of CPU"):
        run_child(["sh", "-c", f"sleep 600 & echo $! > {tmp_path}/pid; {BUSY}"], seconds=0.5, env=ENV)
    await_end(told(tmp_path / "pid"))


def test_what_only_waits_is_ended_by_the_clock(tmp_path: Path) -> None:
    with pytest.raises(TooLongError):
        run_child(["sh", "-c", f"echo $$ > {tmp_path}/pid; sleep 600"], seconds=0.1, env=ENV)
    await_end(told(tmp_path / "pid"))


@pytest.mark.skipif(not leash(), reason="no setpriv with --pdeathsig")
@pytest.mark.parametrize("how", ["sleep 600", BUSY])
def test_it_dies_with_an_engine_that_is_killed(tmp_path: Path, how: str) -> None:
    host = subprocess.Popen([sys.executable, "-c", HOST, f"echo $$ > {tmp_path}/pid; exec sh -c '{how}'"])
    child = told(tmp_path / "pid")
    host.send_signal(signal.SIGKILL)
    host.wait()
    await_end(child)


def test_ctrl_c_ends_it(tmp_path: Path) -> None:
    host = subprocess.Popen(
        [sys.executable, "-c", HOST, f"echo $$ > {tmp_path}/pid; {BUSY}"], stderr=subprocess.DEVNULL
    )
    child = told(tmp_path / "pid")
    host.send_signal(signal.SIGINT)
    assert host.wait() != 0
    await_end(child)


@pytest.mark.parametrize("isolated", [True, False])
def test_nothing_of_the_current_folder_takes_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, isolated: bool
) -> None:
    for name in ("glob.py", "sitecustomize.py"):
        (tmp_path / name).write_text(f"open({str(tmp_path / 'canary')!r}, 'w')\n")
    monkeypatch.chdir(tmp_path)
    env = {**ENV, "PYTHONPATH": "."}  # as many have it
    done = run_child(python("-c", "import glob, os; print(os.getcwd())", isolated=isolated), seconds=20, env=env)
    assert done.stdout == b"/\n"
    assert not (tmp_path / "canary").exists()


def test_an_isolated_python_takes_nothing_of_the_environment(tmp_path: Path) -> None:
    (tmp_path / "glob.py").write_text("raise SystemExit(3)\n")
    env = {**ENV, "PYTHONPATH": str(tmp_path)}
    codes = [
        run_child(python("-c", "import glob", isolated=it), seconds=20, env=env).returncode for it in (True, False)
    ]
    assert codes == [0, 3]
