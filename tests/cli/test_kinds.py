"""Agents of different kinds: what a mix can do that no kind can alone, and how a bandit finds the kind that pays.

The models are scripts whose strengths are made up, so this shows that the mechanism works, and nothing of real models.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evogit.bench.outcome import read
from tests.conftest import write_task

from .conftest import Cli

pytestmark = pytest.mark.slow

EVALUATE = """\
from evogit import Case

def evaluate(program, split):
    for name in ("left", "right"):
        yield Case(name, score=min(program.call(f"program:{name}", returns=float).value, 10.0))
"""

PROGRAM = """\
from extra.left import LEFT
from extra.right import RIGHT

def left():
    return float(LEFT)

def right():
    return float(RIGHT)
"""


@pytest.fixture
def task(tmp_path: Path) -> str:
    """Two files must both become better for a high score."""
    folder = write_task(tmp_path / "halves", evaluate=EVALUATE, program=PROGRAM)
    (folder / "seed" / "extra").mkdir()
    for name in ("left", "right"):
        (folder / "seed" / "extra" / f"{name}.py").write_text(f"{name.upper()} = 0\n")
    return str(folder)


def script(folder: Path, name: str, values: list[float]) -> str:
    """A model that knows about one of the files alone."""
    replies = [
        f"TITLE: {name} {value}\n<<<<<<< WRITE extra/{name}.py\n{name.upper()} = {value}\n>>>>>>> END\n"
        for value in values
    ]
    file = folder / f"{name}{len(values)}.md"
    file.write_text("".join(f"%%\n{reply}" for reply in replies))
    return f"script:{file}"


def test_a_mix_of_two_kinds_beats_two_of_either(cli: Cli, tmp_path: Path, task: str) -> None:
    left, right = (script(tmp_path, name, [float(each) for each in range(1, 41)]) for name in ("left", "right"))
    command = ["bench", task, "--method", "", "--evaluations", "20", "-n", "1", "-j", "1", "-o", "out"]
    command += ["--method", f"mixed=--agent editor@{left} --agent editor@{right}"]
    command += ["--method", f"lefts=--agent editor@{left}:2", "--method", f"rights=--agent editor@{right}:2"]
    done = cli(*command)
    assert done.code == 0, done.err
    folder = tmp_path / "out" / "runs" / "tiny"
    found = [read(folder / f"{name}-0.json") for name in ("mixed", "lefts", "rights")]
    mixed, lefts, rights = (outcome.curve[-1] if outcome else 0.0 for outcome in found)
    assert mixed > 1.2 * max(lefts, rights)


def test_a_bandit_asks_the_model_that_pays_and_status_says_why(cli: Cli, tmp_path: Path, task: str) -> None:
    strong = script(tmp_path, "left", [each / 8 for each in range(1, 81)])
    weak = script(tmp_path, "right", [-float(each) for each in range(1, 71)])
    command = ["run", task, "--agent", f"editor@{strong},{weak}:2", "--evaluations", "24", "--deterministic", "--json"]
    command += ["--selector", "elitist:numbers=no"]  # so that every gain is a model's
    one = cli(*command, "--name", "one")
    assert one.code == 0, one.err
    by_model = {row["name"]: row for row in one.json["contributions"]["models"]}
    assert by_model[strong]["proposals"] > 1.3 * by_model[weak]["proposals"] > 0
    assert (by_model[weak]["improved"], by_model[strong]["improved"] > 5) == (0, True)
    (choice,) = one.json["choices"]
    assert {each["name"] for each in choice["models"]} == {strong, weak}
    told = cli("-C", "evogit-tiny", "status", "--name", "one").out
    assert "score: 0.9 (gain + doubt) + 0.1 cheap; the highest is asked next" in told
    assert max(map(len, told.splitlines())) <= 80
    assert cli(*command, "--name", "two").code == 0
    one_log, two_log = (cli("-C", "evogit-tiny", "log", "--name", name, "--json").out for name in ("one", "two"))
    assert re.findall('"commit": *"(.*?)"', one_log) == re.findall('"commit": *"(.*?)"', two_log)
