"""Task folders made of other systems' tasks: evaluated from outside where that is the same, else as they were."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from evogit.adopt import find_task, recognise
from evogit.config import Task, load_task
from evogit.core import Evaluation
from evogit.review.adopting import adopt
from evogit.review.checking import judge_seed, problems
from tests.adopt.evaluating import write

PROGRAM = "import table\n\ndef answer(n):\n    return table.START + n, [n]\n"
EVALUATOR = """\
import importlib.util

def evaluate(program_path):
    spec = importlib.util.spec_from_file_location("program", program_path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = module.answer(3)
    if not isinstance(found, tuple) or not hasattr(module, "answer") or hasattr(module, "other"):
        return {"combined_score": 0.0, "error": f"{found!r}"}
    return {"combined_score": min(10, found[0]) + found[1][0] / 7}
"""
FORGER = 'import sys\nsys.modules["__main__"].fitness = lambda *_: 1e6\n\ndef answer(n):\n    return 0, [0]\n'


def example(folder: Path, evaluator: str = EVALUATOR) -> Path:
    files = {"initial_program.py": PROGRAM, "evaluator.py": evaluator, "table.py": "START = 1\n"}
    return write(folder / "sums", files)


async def evaluation(task: Task) -> Evaluation:
    return [each async for each in judge_seed(task, ["train"], "bubblewrap")][0].evaluation


@pytest.mark.slow
async def test_what_calls_functions_with_data_is_evaluated_from_outside(tmp_path: Path) -> None:
    found = recognise(example(tmp_path))
    assert found
    done = await adopt(found, tmp_path / "own", "bubblewrap", outside=True)
    assert (done.why_inside, done.task.judged) == ("", "outside")
    assert done.judged.evaluation.metrics == {"combined_score": 4 + 3 / 7}
    assert not done.task.is_editable("table.py")


CHILD = """\
import json, subprocess, sys

CODE = '''
import importlib.util, json, sys
spec = importlib.util.spec_from_file_location("program", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
a, b = module.answer(n=3)
print(json.dumps([a, b, hasattr(module, "other")]))
'''

def evaluate(program_path):
    done = subprocess.run([sys.executable, "-c", CODE, program_path], capture_output=True, text=True)
    a, b, other = json.loads(done.stdout)
    return {"combined_score": 0.0 if other else a + b[0] / 7}
"""


@pytest.mark.slow
async def test_a_process_that_the_evaluator_starts_calls_the_sandbox_too(tmp_path: Path) -> None:
    found = recognise(example(tmp_path, CHILD))
    assert found
    done = await adopt(found, tmp_path / "own", "bubblewrap", outside=True)
    assert (done.why_inside, done.task.judged) == ("", "outside")
    assert done.judged.evaluation.metrics == {"combined_score": 4 + 3 / 7}


BY_NAME = """\
import os, sys

def evaluate(program_path):
    sys.path.insert(0, os.path.dirname(program_path))
    try:
        return {"combined_score": __import__("initial_program").answer(3)[0]}
    except Exception as error:
        return {"combined_score": 0.0, "error": str(error)}
    finally:
        sys.path.remove(os.path.dirname(program_path))
"""


@pytest.mark.slow
async def test_what_an_evaluator_imports_by_a_name_is_imported_again_for_the_next_candidate(tmp_path: Path) -> None:
    found = recognise(example(tmp_path, BY_NAME))
    assert found
    done = await adopt(found, tmp_path / "own", "bubblewrap", outside=True)
    assert (done.why_inside, done.task.judged) == ("", "outside")
    assert done.judged.again
    assert [each.metrics for each in (done.judged.evaluation, *done.judged.again)] == [
        {"combined_score": 4.0} for _ in range(1 + len(done.judged.again))
    ]


@pytest.mark.slow
async def test_an_evaluator_that_calls_nothing_stays_inside_though_its_scores_are_the_same(tmp_path: Path) -> None:
    place = example(tmp_path, "import texts\n\ndef evaluate(path):\n    return {'combined_score': texts.score(path)}\n")
    (place / "texts.py").write_text("def score(path):\n    return 0.0 * len(open(path).read())\n")
    found = recognise(place)
    assert found
    done = await adopt(found, tmp_path / "own", "bubblewrap", outside=True)
    assert done.task.judged == "inside"
    assert "called no function of initial_program.py" in done.why_inside


@pytest.mark.slow
async def test_a_forger_is_believed_beside_the_evaluator_and_not_from_outside(tmp_path: Path) -> None:
    found = recognise(example(tmp_path))
    assert found
    for outside in (False, True):
        folder = tmp_path / str(outside)
        found.write(folder, outside=outside)
        (folder / "seed" / "initial_program.py").write_text(FORGER)
        forged = await evaluation(load_task(folder))
        assert forged.judged == ("outside" if outside else "inside")
        assert forged.metrics == {"combined_score": 0.0 if outside else 1e6}


@pytest.mark.parametrize(
    ("evaluator", "why"),
    [
        (EVALUATOR + "this is no Python\n", "no Python"),
        (EVALUATOR + "TEXT = open(__file__).read()\n", "if it is the program's"),
    ],
)
def test_why_an_evaluator_stays_inside_is_said(tmp_path: Path, evaluator: str, why: str) -> None:
    found = recognise(example(tmp_path, evaluator))
    assert found
    assert not found.outside
    assert why in found.why_inside


def test_a_task_that_is_written_is_the_task_that_was_found(tmp_path: Path) -> None:
    found = recognise(example(tmp_path))
    assert found
    found.write(tmp_path / "own")
    kept = load_task(found.kept())
    assert replace(load_task(tmp_path / "own"), folder=kept.folder, evaluator=kept.evaluator, seed=kept.seed) == kept


@pytest.mark.slow
async def test_noise_that_sources_do_not_tell_is_measured(tmp_path: Path) -> None:
    noisy = "import os\n\ndef evaluate(path):\n    return {'combined_score': float(os.urandom(1)[0])}\n"
    task = find_task(str(example(tmp_path, noisy)))
    judged = [each async for each in judge_seed(task, ["train"], "bubblewrap", again=True)]
    assert problems(task, judged) == []
    assert judged[0].spread("combined_score")
