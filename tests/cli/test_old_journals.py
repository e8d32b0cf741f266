"""Journals are read for ever: a run of 045aade, with all that engines and people did then, is what it was.

`045aade.bundle` is its repository: mutations, merges, adopted candidates, failed proposals, duplicates, a holdout,
a commit that a person added, a prune, a promotion, guidance, and trials of `minimize`. `045aade.json` is what
`evogit log --json` of that time said of each candidate.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

HERE = Path(__file__).parent

READING = (
    "status",
    "status --json",
    "log -n 50",
    "graph -n 50",
    "graph --json",
    "show best",
    "show seed",
    "show {human}",
    "show {trial} --json",
    "brief best",
    "diff seed best",
    "best",
    "report",
    "report --format markdown",
    "decisions",
    "doctor",
    "fsck",
    "gc",
)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """The repository, as somebody has it who cloned it with all its refs."""
    folder = tmp_path / "own"
    for command in (
        ["git", "init", "-q", "-b", "elsewhere", str(folder)],
        ["git", "-C", str(folder), "fetch", "-q", str(HERE / "045aade.bundle"), "refs/*:refs/*"],
        ["git", "-C", str(folder), "switch", "-q", "main"],
        ["git", "-C", str(folder), "config", "user.name", "Ada"],
        ["git", "-C", str(folder), "config", "user.email", "ada@example.org"],
    ):
        subprocess.run(command, check=True, capture_output=True)
    return folder


def candidates(cli: Cli, folder: Path) -> dict[str, list[object]]:
    """Commit -> what is told of a candidate."""
    rows = cli("log", "-n", "100", "--json", cwd=folder).lines
    names = ("number", "agent", "operator", "status", "pruned", "promoted")
    return {row["commit"]: [*(row[name] for name in names), row["metrics"].get("score")] for row in rows}


@pytest.mark.slow
def test_a_run_of_045aade_is_what_it_was_and_goes_on(cli: Cli, old: Path) -> None:
    expected = json.loads((HERE / "045aade.json").read_text())
    known = candidates(cli, old)
    assert known == expected
    named = {
        "human": next(commit for commit, (_, agent, *_) in expected.items() if agent == "human"),
        "trial": next(commit for commit, (_, agent, *_) in expected.items() if agent == "minimize"),
    }
    for command in READING:
        done = cli(*command.format(**named).split(), cwd=old)
        assert done.code == 0, f"{command}: {done.err}"
    status = cli("status", "--json", cwd=old).json
    limits = ("--evaluations", str(len(expected) + 3), "--agent", "mutator:2", "--sandbox", "none", "--seed", "3")
    done = cli("run", *limits, cwd=old)
    assert done.code == 0, done.err
    after = candidates(cli, old)
    assert {commit: after[commit] for commit in expected} == expected
    assert len(after) == len(expected) + 3
    again = cli("status", "--json", cwd=old).json
    assert again["evaluated"] == status["evaluated"] + 3
