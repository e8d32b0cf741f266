from __future__ import annotations

from pathlib import Path

import pytest

from evogit.adopt import find_task
from evogit.core import NotFoundError
from tests.adopt.evaluating import evaluated, score, write

PROGRAM = """\
# EVOLVE-BLOCK-START
STEP = 2
# EVOLVE-BLOCK-END
def evaluate(inputs):
    return {"length": float(inputs["n"] * STEP), "other": 1.0}
"""
EVALUATE = """\
import os
from alpha_evolve.models import AlphaEvolveEvaluationScore, AlphaEvolveEvaluationScores, AlphaEvolveProgramEvaluation

LENGTH_METRIC = "length"
INPUTS = {"n": 21}
BEGIN = open(os.path.join(os.path.dirname(__file__), "program.py")).read()

def length_evaluation(program_candidate) -> dict:
    print("on stdout")
    space = {}
    exec(program_candidate["content"]["files"][0]["content"], space)
    found = space["evaluate"](INPUTS)
    scores = [AlphaEvolveEvaluationScore(metric=name, score=value) for name, value in found.items()]
    return AlphaEvolveProgramEvaluation(scores=AlphaEvolveEvaluationScores(scores=scores[::-1])).model_dump()
"""
FILES = {"src/program.py": PROGRAM, "src/evaluate.py": EVALUATE, "instructions.md": "Make it long.\n"}


def example(place: Path, **more: str) -> Path:
    return write(place / "long", {**FILES, **more})


def test_a_published_example_is_a_task_as_it_is(tmp_path: Path) -> None:
    folder = example(tmp_path)
    task = find_task(str(folder))
    assert (task.name, task.editable, task.judged) == ("long", ("src/program.py",), "inside")
    assert task.goal.startswith("Make it long.")
    assert "EVOLVE-BLOCK-START" in task.goal
    assert task.primary.direction == "maximize"
    assert score(evaluated(task, tmp_path / "box")) == 42
    better = PROGRAM.replace("STEP = 2", "STEP = 3")
    assert score(evaluated(task, tmp_path / "box2", **{"src/program.py": better})) == 63
    for place in (folder / "src", folder / "src" / "program.py", folder / "src" / "evaluate.py"):
        assert find_task(str(place)).editable == ("src/program.py",)


@pytest.mark.parametrize(
    "scores",
    [
        "{'scores': {'scores': [{'metric': 'length', 'score': None}]}}",
        "{'scores': {'scores': [{'metric': 'length', 'score': -1e12}]}}",
        "{'scores': {'scores': []}, 'insights': {'insights': [{'label': 'a', 'text': 'b'}]}}",
        "{'length': float('inf')}",
        "{'a': 1.0, 'b': 2.0}",
    ],
)
def test_what_stands_for_a_failure_is_no_score(tmp_path: Path, scores: str) -> None:
    evaluate = f"def ours(candidate):\n    candidate['content']['files']\n    return {scores}\n"
    done = evaluated(find_task(str(example(tmp_path, **{"src/evaluate.py": evaluate}))), tmp_path / "box")
    assert done.returncode != 0
    assert "the evaluator gives" in done.stderr


@pytest.mark.parametrize(
    "body",
    [
        "def judge(code):\n    space = {}\n    exec(code, space)\n    return space['evaluate']({'n': 5})\n",
        "import runpy\ndef evaluate(path):\n    return runpy.run_path(path)['evaluate']({'n': 5})\n",
    ],
)
def test_a_function_may_take_the_text_or_the_path(tmp_path: Path, body: str) -> None:
    task = find_task(str(example(tmp_path, **{"src/evaluate.py": f"SCORE_NAME = 'length'\n{body}"})))
    assert score(evaluated(task, tmp_path / "box")) == 10


COMMAND = """\
import argparse, json
parser = argparse.ArgumentParser()
parser.add_argument("--output-file")
parser.add_argument({option!r}, dest="given")
given = parser.parse_args()
place = given.given if given.given.endswith(".py") else given.given + "/initial_program.py"
space = {{}}
exec(open(place).read(), space)
json.dump({{"score": space["evaluate"]({{"n": 2}})["length"], "insights": []}}, open(given.output_file, "w"))
"""


@pytest.mark.parametrize("option", ["--input-program-file", "--program-dir"])
def test_a_command_of_theirs_is_run(tmp_path: Path, option: str) -> None:
    files = {
        "initial_program.py": PROGRAM,
        "evaluator.py": COMMAND.format(option=option),
        "problem_description.md": "x",
    }
    task = find_task(str(write(tmp_path / "x", files)))
    assert score(evaluated(task, tmp_path / "box")) == 4
    better = PROGRAM.replace("STEP = 2", "STEP = 3")
    assert score(evaluated(task, tmp_path / "box2", **{"initial_program.py": better})) == 6


def test_a_program_that_needs_no_inputs_is_a_task_alone(tmp_path: Path) -> None:
    alone = PROGRAM.replace('float(inputs["n"] * STEP), "other": 1.0', "STEP")
    task = find_task(str(write(tmp_path / "x", {"program.py": alone})))
    assert score(evaluated(task, tmp_path / "box")) == 2


@pytest.mark.parametrize("named", ["", "program.py"])
def test_a_program_whose_inputs_nothing_says_is_told(tmp_path: Path, named: str) -> None:
    place = write(tmp_path / "x", {"program.py": PROGRAM, "count.py": "print('METRIC score=3')\n"})
    with pytest.raises(NotFoundError, match=r"program\.py scores itself by evaluate\(inputs\), as programs of AlphaEv"):
        find_task(str(place / named))
    assert find_task(str(place / "count.py")).editable == ("count.py",)
