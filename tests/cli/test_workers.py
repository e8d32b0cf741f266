"""`evogit run --workers` and `evogit worker`, as typed."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from evogit.repository import Repository
from tests.clock import PATIENCE

from .conftest import EVOGIT, Cli, Small, environment

WORKER = f"{sys.executable} -c 'from evogit.cli import main; main()' worker"


def test_a_worker_is_started_by_a_run_alone(cli: Cli) -> None:
    said = cli("worker")
    assert said.code == 2
    assert "a run starts this over pipes: `evogit run TASK --workers 'ssh HOST evogit worker:4'`" in said.err


def test_workers_have_commands(cli: Cli) -> None:
    assert "expected --workers COMMAND[:N]" in cli("run", "--workers", ":4").err
    assert "or 0 with workers, got 0" in cli("run", "-j", "0").err


def test_status_says_what_workers_do_while_an_engine_is_at_work(small: Small, cli: Cli) -> None:
    engines = Repository.open(small.folder).engines("toy")
    with engines.enter(join=False) as engine:
        began = engines.since()
        engines.note(engine, [{"name": "gpu1", "doing": "waiting, 12 done", "evaluated": 12, "gone": 0}] * 2)
        lost = {"name": "gpu\x1b[2J", "doing": "left out: it says score 3", "evaluated": 12, "gone": 2}
        engines.note(engine, [lost])
        shown = cli("status", "-C", small.folder)
        assert re.search(r"worker +gpu\S+ +left out: it says score 3 +gone 2 times", shown.out)
        assert "\x1b" not in shown.out
        assert cli("status", "-C", small.folder, "--json").json["workers"] == [lost]
        assert engines.since() == began
    assert cli("status", "-C", small.folder, "--json").json["workers"] == []


@pytest.mark.slow
def test_a_run_on_a_worker_of_the_settings(cli: Cli, tmp_path: Path) -> None:
    settings = tmp_path / "settings.toml"
    settings.write_text(f'[workers]\nbox = "{WORKER}:2"\n')
    about = {"EVOGIT_SETTINGS": str(settings), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    cli("new", "mine")
    command = [EVOGIT, "run", "./mine", "--evaluations", "1000000", "--workers", "box", "-j", "0"]
    about = environment(tmp_path, **about)
    with subprocess.Popen(command, cwd=tmp_path, env=about, stderr=subprocess.PIPE, text=True) as engine:
        assert engine.stderr
        assert "the worker box is ready: 2 at a time, bubblewrap" in next(engine.stderr)
        assert sum("  evaluated " in next(engine.stderr) for _ in range(12)) > 2
        (worker,) = cli("-C", "evogit-mine", "status", "--json").json["workers"]
        assert cli("-C", "evogit-mine", "stop").code == 0
        engine.communicate(timeout=PATIENCE)
    assert engine.returncode == 0
    assert (worker["name"], worker["gone"], worker["evaluated"] > 2) == ("box", 0, True)


def test_a_worker_refuses_a_connection_from_the_network(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as stranger:
        accepted, _ = server.accept()
        with accepted:
            told = {"stdin": accepted, "stdout": accepted, "stderr": subprocess.PIPE, "env": environment(tmp_path)}
            done = subprocess.run([EVOGIT, "worker"], timeout=60, check=False, **told)
        assert done.returncode == 4, done.stderr
        assert stranger.recv(1) == b"", "nothing was said"
