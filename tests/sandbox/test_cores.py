from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from evogit.core import SandboxError
from evogit.sandbox.cores import exclusive_core, kept_free, pinned, turn

needs_two = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="this machine has one core")


@pytest.fixture(autouse=True)
def cores() -> Iterator[set[int]]:
    before = os.sched_getaffinity(0)
    yield before
    os.sched_setaffinity(0, before)


def test_one_core_is_not_enough(cores: set[int]) -> None:
    os.sched_setaffinity(0, {min(cores)})
    with pytest.raises(SandboxError, match=f"core {min(cores)} alone; give it more, or leave exclusive out"):
        exclusive_core()


@needs_two
def test_everybody_keeps_off_the_core_until_the_end(cores: set[int]) -> None:
    seen, go = list[set[int]](), threading.Event()

    def look() -> None:
        go.wait()
        seen.append(os.sched_getaffinity(0))

    thread = threading.Thread(target=look)
    thread.start()
    core = exclusive_core()
    with kept_free(core):
        go.set()
        thread.join()
        script = "import json, os; print(json.dumps(list(os.sched_getaffinity(0))))"
        child = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, check=True)
        seen += [os.sched_getaffinity(0), set(json.loads(child.stdout))]
        with pinned(core), subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as pinned_child:
            assert os.sched_getaffinity(pinned_child.pid) == {core}
        assert core not in os.sched_getaffinity(0)
    assert seen[0] == seen[1] == seen[2], "threads that were there, we ourselves, and what we start"
    assert set() < seen[0] <= cores - {core}
    assert os.sched_getaffinity(0) == cores


WAITS = """
import sys, time
from evogit.sandbox.cores import turn
print("asks", flush=True)
with turn():
    print(time.monotonic(), flush=True)
"""


def test_exclusive_evaluations_wait_for_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with turn():
        other = subprocess.Popen([sys.executable, "-c", WAITS], stdout=subprocess.PIPE)
        assert other.stdout
        assert other.stdout.readline() == b"asks\n"
        time.sleep(0.1)
        ours = time.monotonic()
    with other:
        assert float(other.stdout.readline()) > ours


def test_a_lock_that_cannot_be_taken_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "evogit").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(SandboxError, match="cannot be taken: .*; name a folder of yours with XDG_CACHE_HOME"), turn():
        raise AssertionError("it was taken")
