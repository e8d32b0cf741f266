"""A script that prints its number in a line METRIC is a task; any other is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from evogit.adopt import find_task
from evogit.core import NotFoundError
from evogit.review.checking import advice, judge_seed
from tests.adopt.evaluating import evaluated, metrics, write


@pytest.mark.parametrize(
    ("text", "metric", "value", "direction"),
    [
        ("echo METRIC speed=12.5\necho METRIC other=1\n", "speed", 12.5, "maximize"),
        ("echo METRIC other=1\necho METRIC loss=$((3 * 2))\n", "loss", 6.0, "minimize"),
    ],
)
def test_a_script_that_prints_a_metric_line_is_a_task(
    tmp_path: Path, text: str, metric: str, value: float, direction: str
) -> None:
    task = find_task(str(write(tmp_path / "in", {"bench.sh": text}) / "bench.sh"))
    assert (task.primary.name, task.primary.direction, task.judged) == (metric, direction, "inside")
    assert task.editable == ("bench.sh",)
    assert metrics(task, evaluated(task, tmp_path / "box")) == {metric: value}


@pytest.mark.parametrize("text", ["print(7 * 6)\n", "print(f'loss: {3}')\n", "print('score', 3)\n"])
def test_a_number_of_which_only_prose_tells_is_not_guessed(tmp_path: Path, text: str) -> None:
    with pytest.raises(NotFoundError, match="--model"):
        find_task(str(write(tmp_path, {"a.py": text}) / "a.py"))


def test_a_direction_that_nothing_tells_is_said_to_be_a_guess(tmp_path: Path, caplog) -> None:
    find_task(str(write(tmp_path, {"plain.sh": "echo METRIC quux=1\n"}) / "plain.sh"))
    assert "better the higher" in caplog.text


SCORE = "print('METRIC score=1')\n"
NEIGHBOURS = {
    "data.txt": "1 2 3\n",
    "in/a.csv": "4\n",
    "util.h": '#include "deep.h"\n',
    "deep.h": 'const char *X = "METRIC score=5";\n',
    "solver.py": "print('METRIC cost=', len(open('data.txt').read()))\n",
    "lib/part.js": "module.exports = 4;\n",
    "pack/__init__.py": "",
    "pack/deep.py": "",
    "pack/other.py": "",
    "unrelated.txt": "",
    "other/data.txt": "",
    ".secret": "",
}


@pytest.mark.parametrize(
    ("name", "text", "beside", "editable"),
    [
        (
            "read.py",
            f"from pathlib import Path\nPath(__file__).with_name('data.txt').read_text()[0], '.secret'\n{SCORE}",
            ["data.txt"],
            ["read.py"],
        ),
        ("sim.c", '#include "util.h"\nint main() { puts(X); }\n', ["deep.h", "util.h"], ["sim.c"]),
        ("run.sh", 'D=$(dirname "$0")\npython3 $D/solver.py\n', ["data.txt", "solver.py"], None),
        ("two.py", "import os, solver as s\n", ["data.txt", "solver.py"], ["two.py"]),
        ("run.sh", "python3 -u -m solver\n", ["data.txt", "solver.py"], None),
        ("a.js", "console.log(require('./lib/part'), '../x')\nconsole.log('METRIC s=1')", ["lib/part.js"], ["a.js"]),
        ("p.py", f"import pack, pack.deep\n{SCORE}", ["pack/__init__.py", "pack/deep.py"], ["p.py"]),
    ],
)
def test_files_that_a_script_names_come_along(tmp_path: Path, name, text, beside, editable) -> None:
    task = find_task(str(write(tmp_path, {**NEIGHBOURS, name: text}) / name))
    assert sorted(task.seed_files()) == sorted([name, *beside])
    assert list(task.editable) == (editable or ["run.sh", "solver.py"])
    assert task.environment.packages == ()


@pytest.mark.slow
async def test_a_program_that_misses_its_arguments_says_nothing_and_check_says_why(tmp_path: Path) -> None:
    text = "import sys\nfor each in sys.argv[1:]:\n    print('METRIC cost=1')\n"
    task = find_task(str(write(tmp_path, {"a.py": text}) / "a.py"))
    [failed] = [each async for each in judge_seed(task, ["train"], "bubblewrap")]
    assert "it printed nothing" in failed.evaluation.reason
    assert advice(task, failed).startswith("It may expect arguments or an input")
