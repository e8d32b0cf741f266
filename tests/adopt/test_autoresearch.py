from __future__ import annotations

from pathlib import Path

import pytest

from evogit.adopt import find_task
from evogit.core import NotFoundError
from tests.adopt.evaluating import evaluated, write

PROGRAM = """\
# research
## Setup
- `prepare.py` - constants and evaluation. Do not modify.
- `train.py` - the file you modify.
Data first: `uv run prepare.py`.
## Experimentation
Launch it as `uv run train.py`. The goal is simple: get the lowest val_bpb.
Run: `uv run train.py > run.log 2>&1`, read: `grep "^val_bpb:" run.log`. If a run exceeds 10 minutes, kill it.
"""


def test_an_autoresearch_folder_is_a_task_as_it_is(tmp_path: Path) -> None:
    files = {
        "program.md": PROGRAM,
        "train.py": "from prepare import BEST\nprint(f'val_bpb:          {BEST + 0.5:.6f}')\nprint('steps: 3')\n",
        "prepare.py": "BEST = 0.5\n",
        "pyproject.toml": '[project]\nname = "a"\ndependencies = ["numpy>=1.26"]\n',
        "results.tsv": "commit\tval_bpb\n",
    }
    task = find_task(str(write(tmp_path / "lm", files)))
    assert task.editable == ("train.py",)
    assert (task.primary.name, task.primary.direction) == ("val_bpb", "minimize")
    assert task.limits.wall == 600
    assert task.environment.packages == ("numpy>=1.26",)
    assert "the file you modify" in task.goal
    assert task.command
    assert task.command.text == "python3 train.py"
    assert "val_bpb:          1.000000" in evaluated(task, tmp_path / "box").stdout


def test_a_session_with_metric_lines_is_one_too(tmp_path: Path) -> None:
    words = (
        "# Autoresearch: sort\n## Metrics\n- **Primary**: seconds (s, lower is better)\n## How to Run\n"
        "`./autoresearch.sh` outputs METRIC name=number lines.\n## Files in Scope\n- `sort.py`: the sorter\n"
        "## Off Limits\n- `check.py`\n"
    )
    files = {"autoresearch.md": words, "autoresearch.sh": "python3 sort.py\necho METRIC seconds=0.5\n"}
    files |= {"sort.py": "print('sorted')\n", "check.py": ""}
    task = find_task(str(write(tmp_path / "sort", files)))
    assert (task.editable, task.primary.name, task.primary.direction) == (("sort.py",), "seconds", "minimize")
    assert "METRIC seconds=0.5" in evaluated(task, tmp_path / "box").stdout


def test_instructions_without_files_are_no_task(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="autoresearch"):
        find_task(str(write(tmp_path, {"program.md": PROGRAM})))


def test_commands_in_blocks_and_labels_in_sources_are_found(tmp_path: Path) -> None:
    words = (
        "# Solver\nOptimize `solver.py`. `bench.py` is read-only.\n\n```sh\npip install numpy\n"
        "python bench.py --all\n```\nA higher score is better; it prints score on the last line.\n"
    )
    files = {"program.md": words, "solver.py": "X = 2\n"}
    files["bench.py"] = "import solver\nprint('score:', solver.X * 2)\n"
    task = find_task(str(write(tmp_path / "solver", files)))
    assert task.command
    assert (task.editable, task.command.text) == (("solver.py",), "python3 bench.py --all")
    assert (task.primary.name, task.primary.direction) == ("score", "maximize")
    assert evaluated(task, tmp_path / "box").stdout == "score: 4\n"
