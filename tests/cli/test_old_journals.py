"""Runs of 045aade and 8c4f09cc are what they were, with all that engines and users did then: journals stay readable.

A bundle is such a repository: mutations, merges, adopted candidates, failed proposals, duplicates, a holdout, a commit
that the user added, a prune, a promotion, guidance, and trials of `minimize`. The JSON file beside it has the rows that
`evogit log --json` of that time printed for each candidate. Runs of 045aade have no keys. 8c4f09cc.bundle has three
runs, one of them forked from another and one deterministic, a scripted editor, and keys, which are in the JSON file.
"""

from __future__ import annotations

import json
import re
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
    "show best --brief",
    "diff seed best",
    "report",
    "log --decisions",
    "doctor",
    "doctor runs",
    "clean --evidence failed",
)


def cloned(folder: Path, name: str) -> Path:
    """Clone a bundle with all its refs."""
    for command in (
        ["git", "init", "-q", "-b", "elsewhere", str(folder)],
        ["git", "-C", str(folder), "fetch", "-q", str(HERE / f"{name}.bundle"), "refs/*:refs/*"],
        ["git", "-C", str(folder), "switch", "-q", "main"],
        ["git", "-C", str(folder), "config", "user.name", "Ada"],
        ["git", "-C", str(folder), "config", "user.email", "ada@example.org"],
    ):
        subprocess.run(command, check=True, capture_output=True)
    return folder


def goes_on(cli: Cli, folder: Path, *arguments: str) -> None:
    """Go on with a run once its origin, which a new user is asked about, is trusted."""
    state = {"XDG_STATE_HOME": str(folder.with_name("state"))}
    assert cli("trust", folder, **state).code == 0
    refused = cli("run", *arguments, cwd=folder, **state)
    assert refused.code == 4, refused.err
    (digest,) = re.findall(r"evogit trust ([0-9a-f]+)$", refused.err, re.MULTILINE)
    assert cli("trust", digest, **state).code == 0
    done = cli("run", *arguments, cwd=folder, **state)
    assert done.code == 0, done.err


def candidates(cli: Cli, folder: Path, run: str) -> dict[str, list[object]]:
    """Commit -> the row of a candidate."""
    rows = cli("log", "-n", "100", "--json", "--name", run, cwd=folder).lines
    names = ("number", "agent", "operator", "status", "pruned", "promoted")
    return {row["commit"]: [*(row[name] for name in names), row["metrics"].get("score")] for row in rows}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "run"), [("045aade", "own"), *(("8c4f09cc", run) for run in ("own", "fork", "det"))])
def test_an_old_run_is_what_it_was_and_goes_on(cli: Cli, tmp_path: Path, name: str, run: str) -> None:
    known = json.loads((HERE / f"{name}.json").read_text())
    folder, keys, expected = cloned(tmp_path / "own", name), known.get("keys", {}), known
    if keys:
        expected = known["runs"][run]
        assert cli("run", "--name", run, "--evaluations", "99", cwd=folder).code == 4, "without its key it is only read"
        for each, key in keys.items():
            (folder / ".git/evogit/keys").mkdir(parents=True, exist_ok=True)
            (folder / ".git/evogit/keys" / each).write_bytes(bytes.fromhex(key))
    assert candidates(cli, folder, run) == expected
    named = {
        "human": next((commit for commit, (_, agent, *_) in expected.items() if agent == "human"), "best"),
        "trial": next((commit for commit, (_, agent, *_) in expected.items() if agent == "minimize"), "best"),
    }
    for command in READING:
        chosen = [] if command.startswith("doctor") else ["--name", run]
        done = cli(*command.format(**named).split(), *chosen, cwd=folder)
        assert done.code == 0, f"{command}: {done.err}"
    status = cli("status", "--json", "--name", run, cwd=folder).json
    limits = ["--evaluations", str(len(expected) + 3), "--agent", "mutator:2", "--sandbox", "none", "--seed", "3"]
    goes_on(cli, folder, "--name", run, *limits, *["--deterministic"] * (run == "det"))
    after = candidates(cli, folder, run)
    assert {commit: after[commit] for commit in expected} == expected
    assert len(after) == len(expected) + 3
    again = cli("status", "--json", "--name", run, cwd=folder).json
    assert again["evaluated"] == status["evaluated"] + 3
