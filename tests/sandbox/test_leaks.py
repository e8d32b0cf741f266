"""What many evaluations leave behind: nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from evogit.sandbox.pool import MOST_SESSIONS

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "sandbox.py"
EVALUATIONS = 2 * MOST_SESSIONS + 50
"""Two at a time: enough for every worker to be replaced."""


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, dict[str, float]]]:
    """Provider -> point in time -> what was counted -> how much of it."""
    file = tmp_path_factory.mktemp("leaks") / "leaks.json"
    subprocess.run([sys.executable, BENCHMARK, "--leaks", str(EVALUATIONS), "--json", file], check=True)
    found: dict[str, dict[str, dict[str, float]]] = json.loads(file.read_text())
    return found


@pytest.mark.docker
@pytest.mark.slow
@pytest.mark.parametrize("provider", ["docker", "bubblewrap"])
def test_many_evaluations_leave_nothing_behind(counted, provider):
    points = counted[provider]
    before, early, late, after = (points[at] for at in ("before", "after a tenth", "at the end", "afterwards"))
    for what in ("processes", "containers", "temporary files", "engine fds"):
        assert (what, after[what]) == (what, before[what])
        assert (what, late[what]) == (what, early[what])
    assert late["judges fds"] <= early["judges fds"] + 20  # each keeps up to ten connections to Docker's daemon
    for what in ("engine MB", "judges MB", "workers MB"):
        assert late[what] < early[what] + 10
    for what in filter(lambda name: name.startswith("machine"), after):  # others may use the machine meanwhile
        assert after[what] < before[what] + EVALUATIONS / 10
