"""The table of `make bench`: one group measured at a tiny size, and figures beside committed ones."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import budget

ROW = budget.Row("x", "something, CPU ms", 5, is_time=True)


@pytest.mark.slow
def test_a_figure_that_got_worse_is_marked(tmp_path: Path) -> None:
    kept = tmp_path / "kept.json"
    kept.write_text(json.dumps({"commit": "1a2b3c4", "figures": {"write.cpu": [1e-6], "pace": [50.0]}}))
    asked = ["--only", "write", "--candidates", "5", "--rounds", "1", "--against", str(kept)]
    done = subprocess.run([sys.executable, budget.__file__, *asked], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    [line] = (line for line in done.stdout.splitlines() if line.startswith("  CPU ms per candidate"))
    assert "worse" in line


def test_noise_is_no_change() -> None:
    assert budget.compare(ROW, [10.5], [10.0], 1.0) == ""
    assert budget.compare(ROW, [13.0], [8.0, 10.0, 12.5], 1.0) == "worse"
    assert budget.compare(ROW, [12.0], [8.0, 10.0, 12.5], 1.0) == ""


def test_a_slower_machine_is_no_change() -> None:
    assert budget.compare(ROW, [20.0], [10.0], 2.0) == ""
    assert budget.compare(ROW, [10.0], [10.0], 2.0) == "better"


def test_of_some_figures_more_is_better() -> None:
    row = budget.Row("y", "evaluations", 200, more=True)
    assert budget.compare(row, [150.0], [200.0], 1.0) == "worse"
    assert budget.missed(row, [150.0]) == "below limit"
    assert budget.missed(row, [200.0]) == ""
    assert budget.missed(ROW, [6.0]) == "over limit"


def test_what_was_kept_is_read_again(tmp_path: Path) -> None:
    kept = tmp_path / "kept.json"
    budget.keep(kept, {"x": [1.0, 2.0]}, {"x": [3.0], "demo": [4.0]})
    assert budget.read(kept)[1] == {"x": [1.0, 2.0], "demo": [4.0]}
