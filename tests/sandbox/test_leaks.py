"""What many evaluations leave behind: nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Once

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "leaks.py"
EVALUATIONS = 100
"""Enough that what each leaves would show; `benchmarks/leaks.py 1050` lets every worker be replaced, too."""


@pytest.fixture(scope="module")
def counted(once: Once) -> dict[str, dict[str, dict[str, float]]]:
    """Provider -> point in time -> what was counted -> how much of it."""

    def count(folder: Path) -> None:
        command = [sys.executable, BENCHMARK, str(EVALUATIONS), "--json", folder / "leaks.json"]
        subprocess.run(command, check=True)

    found: dict[str, dict[str, dict[str, float]]] = json.loads((once("leaks", count) / "leaks.json").read_text())
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
        assert after[what] < before[what] + EVALUATIONS / 3
