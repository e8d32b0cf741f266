"""`check` says where each number is from, and tries whether a broken seed is noticed."""

from __future__ import annotations

from pathlib import Path

import pytest

from evogit.adopt import find_task
from evogit.evaluation.program import Invalid
from evogit.review.checking import judge_seed
from tests.adopt.evaluating import evaluated, metrics, write

from .conftest import Cli, Done

TOML = """\
name = "fit"
goal = "Fit."
editable = ["fit.py"]
[metrics.loss]
direction = "{direction}"
[evaluator]
kind = "command"
command = "python3 .evogit/bench.py"
read.loss = '{read}'
"""
FIT = "def predict(x):\n    return x\n"
CAUGHT = """\
import json, sys
sys.path.insert(0, ".")
try:
    from fit import predict
    print(json.dumps({"loss": LOSS, "n": 3}))
except Exception as error:
    print(json.dumps({"loss": 0.0MORE}))
"""


def checked(
    cli: Cli, folder: Path, read: str = "json", direction: str = "minimize", more: str = "", loss: str = ""
) -> Done:
    """Check a task whose benchmark catches what its code raises, and gives 0 for it."""
    bench = CAUGHT.replace("LOSS", loss or "78.5 - predict(0)").replace("MORE", more)
    toml = TOML.format(read=read, direction=direction)
    write(folder, {"task.toml": toml, "seed/fit.py": FIT, ".evogit/bench.py": bench})
    return cli("check", "--json", folder)


def test_all_matches_of_a_pattern_are_told_and_the_one_that_is_taken(cli: Cli, tmp_path: Path) -> None:
    lines = "print('setup 3 s')\nprint('total 7 s')\nprint('user 5 s')\n"
    toml = TOML.format(read="regex:([0-9.]+) s", direction="minimize")
    write(tmp_path / "task", {"task.toml": toml, "seed/fit.py": FIT, ".evogit/bench.py": lines})
    [source] = cli("check", "--json", "task").json["sources"]
    assert (source["value"], source["where"]) == (7, "line 2 of stdout")
    assert [other.partition(": ")[2] for other in source["others"]] == ["setup 3 s", "user 5 s"]


def test_a_pattern_that_would_misread_a_faster_candidate_is_a_problem(cli: Cli, tmp_path: Path) -> None:
    toml = TOML.format(read=r"regex:took (\d\.\d\d)", direction="minimize")
    files = {"task.toml": toml, "seed/fit.py": FIT, ".evogit/bench.py": "print('took 2.51 s')\n"}
    done = cli("check", "--json", write(tmp_path / "task", files))
    assert done.code == 1
    assert [line for line in done.json["problems"] if "2.5e-06" in line]


@pytest.mark.parametrize(
    ("direction", "loss", "more", "unnoticed"),
    [
        ("minimize", "", "", True),
        ("minimize", "", ', "error": str(error)', False),
        ("maximize", "", "", False),
        ("maximize", "-5 + predict(0)", "", True),
        ("maximize", "predict(0)", "", False),
        ("minimize", "7", "", True),
    ],
)
def test_a_broken_seed_that_scores_no_worse_is_told(
    cli: Cli, tmp_path: Path, direction: str, loss: str, more: str, unnoticed: bool
) -> None:
    done = checked(cli, tmp_path / "task", direction=direction, loss=loss, more=more)
    assert (done.code, bool(done.json["broken_seed"])) == (0, unnoticed)


def test_the_broken_seed_is_evaluated_once_for_each_version_of_a_task(cli: Cli, tmp_path: Path) -> None:
    first = checked(cli, tmp_path / "task").json["broken_seed"]
    [memory] = (tmp_path / ".local" / "state" / "evogit" / "broken-seeds").iterdir()
    memory.write_text(memory.read_text().replace("0.0", "7.0"))
    again = checked(cli, tmp_path / "task").json["broken_seed"]
    assert "scores 0 " in first
    assert "scores 7 " in again
    assert "scores 0 " in checked(cli, tmp_path / "task", loss="80 + predict(0)").json["broken_seed"]


def test_a_seed_that_tells_a_failure_fails_and_the_key_that_ignores_it_is_named(cli: Cli, tmp_path: Path) -> None:
    done = checked(cli, tmp_path / "task", loss='1, "valid": False')
    assert (done.code, done.json["splits"][0]["status"]) == (1, "invalid")
    assert "ignored_failures" in cli("check", "task").out
    toml = (tmp_path / "task" / "task.toml").read_text() + 'ignored_failures = ["valid"]\n'
    (tmp_path / "task" / "task.toml").write_text(toml)
    assert cli("check", "--json", "task").json["splits"][0]["metrics"] == {"loss": 1}


SCORED = """\
def evaluate(path):
    text = open(path).read()
    good = "GOOD" in text
    return {"combined_score": -3.0} if good else {"combined_score": 0.0, FAILURE}
"""


@pytest.mark.parametrize("failure", ['"error": "no such name"', '"valid": False', '"status": "failed"'])
async def test_an_openevolve_evaluator_that_tells_a_failure_scores_the_seed_alone(tmp_path: Path, failure: str) -> None:
    files = {"initial_program.py": "X = 1\n", "evaluator.py": SCORED.replace("FAILURE", failure)}
    task = find_task(str(write(tmp_path / "theirs", files)))
    [judged] = [each async for each in judge_seed(task, ["train"], "bubblewrap")]
    assert judged.evaluation.metrics == {"combined_score": 0.0}
    with pytest.raises(Invalid, match="a failure is told beside combined_score"):
        metrics(task, evaluated(task, tmp_path / "box", **{"initial_program.py": "X = 2\n"}))


@pytest.mark.parametrize(("place", "is_exposed"), [("holdout.txt", True), ("holdout/data.txt", False)])
def test_a_holdout_that_candidates_can_read_on_train_is_named(
    cli: Cli, tmp_path: Path, place: str, is_exposed: bool
) -> None:
    toml = TOML.format(read="json", direction="minimize") + 'splits = ["train", "holdout"]\n'
    bench = "import json\nfrom fit import predict\nprint(json.dumps({'loss': 78.5 - predict(0)}))\n"
    files = {"task.toml": toml, "seed/fit.py": FIT, ".evogit/bench.py": bench, f".evogit/{place}": "7\n"}
    write(tmp_path / "task", files)
    assert bool(cli("check", "--json", tmp_path / "task").json["exposed"]) == is_exposed
