"""`evogit run --workers` and `evogit worker`, as typed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from .conftest import Cli

WORKER = f"{sys.executable} -c 'from evogit.cli import main; main()' worker"


def test_a_worker_is_started_by_a_run_alone(cli: Cli) -> None:
    said = cli("worker")
    assert said.code == 2
    assert "a run starts this over pipes: `evogit run TASK --workers 'ssh HOST evogit worker:4'`" in said.err


def test_workers_have_commands(cli: Cli) -> None:
    assert "expected --workers COMMAND[:N]" in cli("run", "--workers", ":4").err
    assert "or 0 with --workers, got 0" in cli("run", "-j", "0").err


@pytest.mark.slow
def test_a_run_on_a_worker_of_the_settings(script: Cli, tmp_path: Path) -> None:
    settings = tmp_path / "settings.toml"
    settings.write_text(f'[workers.box]\ncommand = "{WORKER}"\njobs = 2\n')
    about = {"EVOGIT_SETTINGS": str(settings), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    script("new", "mine")
    said = script("run", "./mine", "--evaluations", "6", "--workers", "box", "-j", "0", **about)
    assert "the worker box is ready: 2 at a time, bubblewrap" in said.err
    assert script("-C", "evogit-mine", "status", "--json").json["evaluated"] == 6
