from __future__ import annotations

from pathlib import Path

import pytest

from evogit.adopt import find_task
from evogit.config.values import MetricReader
from evogit.evaluation.command import case_of
from evogit.evaluation.program import Ran
from tests.adopt.evaluating import evaluated, write


def metrics(task, done):
    assert task.command
    ran = Ran(
        code=done.returncode,
        signal=0,
        stdout=done.stdout,
        stderr=done.stderr,
        cpu=0.0,
        wall=0.0,
        memory=0,
        breach=None,
        detail="",
        files={},
    )
    return case_of(task.command, ran).metrics


@pytest.mark.parametrize(
    ("name", "text", "metric", "value", "direction"),
    [
        ("plain.py", "print('begin 3')\nprint(7 * 6)\n", "score", 42.0, "maximize"),
        ("labels.py", "loss = 0.25\nprint(f'done, loss: {loss} after 10 steps')\n", "loss", 0.25, "minimize"),
        ("lines.sh", "echo METRIC speed=12.5\necho METRIC other=1\n", "speed", 12.5, "maximize"),
        ("object.py", "import json\nprint(json.dumps({'accuracy': 0.5}))\n", "accuracy", 0.5, "maximize"),
    ],
)
def test_a_script_that_prints_a_number_is_a_task(tmp_path: Path, name, text, metric, value, direction) -> None:
    task = find_task(str(write(tmp_path, {name: text}) / name))
    assert (task.primary.name, task.primary.direction, task.judged) == (metric, direction, "inside")
    assert task.editable == (name,)
    assert metrics(task, evaluated(task, tmp_path / "box")) == {metric: value}


def test_modules_beside_a_script_come_along_and_stay_as_they_are(tmp_path: Path) -> None:
    files = {
        "main.py": "from part import VALUE\nprint(VALUE)\n",
        "part.py": "VALUE = 5\n",
        "other.py": "import torch\n",
    }
    task = find_task(str(write(tmp_path, files) / "main.py"))
    assert task.seed_files().keys() == {"main.py", "part.py"}
    assert not task.is_editable("part.py")
    assert task.environment.packages == ()
    assert MetricReader.parse("json")
