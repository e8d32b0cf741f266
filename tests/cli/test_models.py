"""Engines with recordings instead of models."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from .conftest import Cli


@pytest.mark.slow
def test_a_replay_makes_the_same_candidates_without_the_model(cli: Cli, tmp_path: Path) -> None:
    cli("new", "sine")
    replies = tmp_path / "replies.txt"
    replies.write_text("".join(f"%%\nTITLE: t\n<<<<<<< WRITE program.py\nN = {n}\n>>>>>>> END\n" for n in range(4)))
    command = ["run", "sine", "--model", f"script:{replies}", "--agents", "2", "--deterministic", "--proposals", "5"]
    assert cli(*command, "-C", "recorded", "--record", "recording").code == 0
    replies.unlink()
    replayed = cli(*command, "-C", "replayed", "--replay", "recording")
    assert replayed.code == 0, replayed.err
    assert heads(tmp_path / "recorded") == heads(tmp_path / "replayed") != ""


def heads(place: Path) -> str:
    command = ["git", "-C", str(place), "for-each-ref", "--format=%(objectname) %(refname)", "refs/heads"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
