from __future__ import annotations

import re
from pathlib import Path

import pytest

from evogit.adopt import find_task
from evogit.adopt.notes import admitted
from evogit.core import NotFoundError
from evogit.review.checking import advice, judge_seed, problems
from tests.adopt.evaluating import evaluated, score, write

PROGRAM = "# EVOLVE-BLOCK-START\nX = 2.0\n# EVOLVE-BLOCK-END\n"
EVALUATOR = """\
import importlib.util
import re
from pathlib import Path
from openevolve.evaluation_result import EvaluationResult
from helper import half

def _x(path):
    spec = importlib.util.spec_from_file_location("program", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.X

def evaluate(program_path):
    print("noise on stdout")
    Path("left.txt").write_text("evaluators may write beside themselves")
    return EvaluationResult({"a": _x(program_path), "b": half(6.0), "size": 100.0, "flag": True}, {"hint": "try 3"})
"""
STAGES = """\
def evaluate_stage1(path):
    return {"combined_score": 0.6, "quick": True, "error": 0.0}

def evaluate_stage2(path):
    return {"combined_score": 0.7, "slow": 1}

def evaluate_stage3(path):
    return {"combined_score": 0.9}
"""
CONFIG = """\
prompt:
  system_message: |
    Make X larger.

    It may be anything.
database:
  feature_dimensions: ["size"]   # not ranked
evaluator:
  timeout: 7
  cascade_thresholds: [0.5, 0.8]
"""


def example(folder: Path, **more: str) -> Path:
    solved = dict.fromkeys(("best_program.py", "evolved_best_program.py", "evolved_program/x.py"), "X = 1e9\n")
    files = {"initial_program.py": PROGRAM, "evaluator.py": EVALUATOR, "helper.py": "def half(x): return x / 2\n"}
    return write(folder / "my example", {**files, "config.yaml": CONFIG, **solved, **more})


def test_an_openevolve_example_is_a_task_as_it_is(tmp_path: Path) -> None:
    folder = example(tmp_path, **{"requirements.txt": "numpy>=1.21 # arrays\n-r other.txt\nhttps://a.b/c.whl\n"})
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    task = find_task(str(folder))
    assert task.name == "my-example"
    assert task.judged == "inside"
    assert task.editable == ("initial_program.py",)
    assert task.goal.startswith("Make X larger.\n\nIt may be anything.")
    assert "EVOLVE-BLOCK-START" in task.goal
    assert task.limits.wall == 7 + 30
    assert task.environment.packages == ("numpy>=1.21",)
    assert task.seed_files().keys() == {"initial_program.py"}
    assert not any("best_program" in path or "evolved" in path for path in task.evaluator_files())
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_without_combined_score_the_mean_of_what_is_no_feature_ranks(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    task = find_task(str(example(tmp_path)))
    assert "the mean of all numbers that it gives ranks" in caplog.text
    assert "the mean of all numbers" in task.goal
    done = evaluated(task, tmp_path / "box")
    assert score(done) == 2.5
    assert "[hint] try 3" in done.stdout
    assert "noise" not in done.stdout
    assert score(evaluated(task, tmp_path / "box2", **{"initial_program.py": "X = 4.0\n"})) == 3.5
    assert "feedback by models" not in caplog.text
    default = "def evaluate(path):\n    return {'a': 1.0, 'complexity': 100.0, 'diversity': 7}\n"
    judged = "evaluator:\n  use_llm_feedback: true\n"
    task = find_task(str(example(tmp_path / "2", **{"evaluator.py": default, "config.yaml": judged})))
    assert score(evaluated(task, tmp_path / "box3")) == 1
    assert "feedback by models (use_llm_feedback), which is not done here" in caplog.text


def test_stages_end_where_a_threshold_is_not_reached(tmp_path: Path) -> None:
    task = find_task(str(example(tmp_path, **{"evaluator.py": STAGES})))
    assert task.limits.wall == 3 * 7 + 30
    done = evaluated(task, tmp_path / "box")
    assert score(done) == 0.7
    assert '"slow": 1.0' in done.stdout
    off = CONFIG + "  cascade_evaluation: false\n"
    whole = example(
        tmp_path / "2", **{"evaluator.py": f"{STAGES}\ndef evaluate(path): return {{'a': 3}}\n", "config.yaml": off}
    )
    assert score(evaluated(find_task(str(whole)), tmp_path / "box2")) == 3


def test_a_stage_that_takes_too_long_counts_as_there(tmp_path: Path) -> None:
    last = '    return {"combined_score": 0.7'
    slow = "import time\n" + STAGES.replace(last, f"    time.sleep(60)\n{last}")
    brief = CONFIG.replace("timeout: 7", "timeout: 0.2")
    task = find_task(str(example(tmp_path, **{"evaluator.py": slow, "config.yaml": brief})))
    done = evaluated(task, tmp_path / "box")
    assert score(done) == 0.6
    assert "[timeout] stage 2 took longer than 0.2 s" in done.stdout
    never = "import time\ndef evaluate(path):\n    time.sleep(60)\n"
    task = find_task(str(example(tmp_path / "2", **{"evaluator.py": never, "config.yaml": brief})))
    assert score(evaluated(task, tmp_path / "box2")) == 0


STUBBORN = """\
import subprocess, sys, threading
import re
from pathlib import Path

HERE = Path(__file__).resolve().parent
threading.Thread(target=threading.Event().wait).start()

def evaluate(program_path):
    (HERE / "build").mkdir()
    with (HERE / "history.csv").open("a") as history:
        history.write("1\\n")
    told = subprocess.run([sys.executable, "-I", "-c", "import beside; print(beside.X)"], env={}, capture_output=True)
    return {"combined_score": None, "accuracy": float(told.stdout), "speed": 1.0}
"""


def test_an_evaluator_may_write_start_pythons_of_its_own_and_leave_threads(tmp_path: Path) -> None:
    packages = write(tmp_path / "packages", {"beside.py": "X = 0.5\n"})
    task = find_task(str(example(tmp_path, **{"evaluator.py": STUBBORN, "history.csv": "0\n", "config.yaml": ""})))
    assert score(evaluated(task, tmp_path / "box", str(packages))) == 0.75


IMPORTING = """\
import sys, tempfile
import re
from pathlib import Path
from initial_program import X

def evaluate(program_path):
    place = Path(program_path)
    sys.path.insert(0, str(place.parent))
    mine = __import__(place.stem).X
    return {"combined_score": 10 * X + mine, "temporary": place.parent == Path(tempfile.gettempdir())}
"""


def test_a_program_lies_where_they_write_it_and_hides_no_module_of_theirs(tmp_path: Path) -> None:
    task = find_task(str(example(tmp_path, **{"evaluator.py": IMPORTING})))
    done = evaluated(task, tmp_path / "box", **{"initial_program.py": "X = 5.0\n"})
    assert score(done) == 25
    assert '"temporary": 1.0' in done.stdout


def test_an_async_evaluator_is_waited_for(tmp_path: Path) -> None:
    waited = "import asyncio\nasync def evaluate(path):\n    await asyncio.sleep(0)\n    return {'combined_score': 7}\n"
    assert score(evaluated(find_task(str(example(tmp_path, **{"evaluator.py": waited}))), tmp_path / "box")) == 7


def test_what_the_sources_name_comes_along_and_what_runs_left_behind_does_not(tmp_path: Path) -> None:
    named = 'def evaluate(path):\n    open("data/app.log"), open("checkpoints/w.npz")\n    return {"a": 1}\n'
    left = {"data/app.log": "1", "checkpoints/w.npz": "2", "logs/run.txt": "3", "plot.png": "4"}
    task = find_task(str(example(tmp_path, **{"evaluator.py": named, **left})))
    found = {path.removeprefix("task/") for path in task.evaluator_files()}
    assert found & left.keys() == {"data/app.log", "checkpoints/w.npz"}


def test_instructions_may_be_a_template(tmp_path: Path) -> None:
    config = "prompt:\n  template_dir: templates\n"
    templates = {"sum_config.yaml": config, "templates/system_message.txt": "Make X as large as it gets."}
    folder = example(tmp_path, **templates)
    (folder / "config.yaml").unlink()
    assert find_task(str(folder)).goal.startswith("Make X as large as it gets.")
    (folder / "sum_config.yaml").write_text(config.replace("templates", "ours/templates"))
    assert find_task(str(folder)).goal.startswith("Make X as large as it gets.")
    (folder / "sum_config.yaml").write_text("llm:\n  system_message: Make X small.\n")
    assert find_task(str(folder)).goal.startswith("Make X small.")


def test_of_several_configurations_the_plainest_is_read_unless_one_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    said = {f"config_{name}.yaml": f"prompt:\n  system_message: Make it {name}.\n" for name in ("a_special", "1", "2")}
    folder = example(tmp_path, **said)
    (folder / "config.yaml").unlink()
    assert find_task(str(folder)).goal.startswith("Make it 1.")
    assert "it is read with config_1.yaml; name another one to use that, such as" in caplog.text
    assert find_task(str(folder / "config_2.yaml")).goal.startswith("Make it 2.")


def test_programs_and_evaluators_may_be_called_otherwise_where_there_is_one(tmp_path: Path) -> None:
    folder = example(tmp_path)
    (folder / "initial_program.py").rename(folder / "initial_content.txt")
    (folder / "evaluator.py").rename(folder / "sum_evaluator_1.py")
    assert find_task(str(folder)).editable == ("initial_content.txt",)
    (folder / "initial_content.txt").rename(folder / "initial_prompt.md")
    assert find_task(str(folder)).editable == ("initial_prompt.md",)
    (folder / "sum_evaluator_2.py").write_text("def evaluate(path):\n    return {'a': 9.0}\n")
    with pytest.raises(NotFoundError, match=r"sum_evaluator_1\.py and sum_evaluator_2\.py all evaluate; name one"):
        find_task(str(folder))
    task = find_task(str(folder / "sum_evaluator_2.py"))
    assert score(evaluated(task, tmp_path / "box")) == 9


def test_the_program_that_a_run_begins_with_may_be_named(tmp_path: Path) -> None:
    folder = example(
        tmp_path, **{"b_prompt.txt": "Add.", "c_prompt.txt": "Sum.", "script.py": "print('METRIC score=1')\n"}
    )
    assert find_task(str(folder / "initial_program.py")).editable == ("initial_program.py",)
    assert find_task(str(folder / "b_prompt.txt")).editable == ("b_prompt.txt",)
    assert find_task(str(folder / "script.py")).primary.name == "score"
    (folder / "initial_program.py").unlink()
    with pytest.raises(NotFoundError, match=r"evaluator\.py has no initial_program\.\* beside it; where"):
        find_task(str(folder))
    (folder / "initial_program").mkdir()
    with pytest.raises(NotFoundError, match=r"its initial_program is a folder, and evaluator\.py is given one file"):
        find_task(str(folder))


PRINTED = """\
[error] none
[error_count] 3
[hint] Error: none of ours
[failure_reason]
{
  "message": "CUDA is not available"
}
[plan] next
{"combined_score": 0.0}
last lines of stderr:
Traceback (most recent call last):
  File "evaluator.py", line 1, in evaluate
ValueError: expected lines
"""


def test_what_stands_beside_a_score_may_speak_of_a_failure() -> None:
    assert admitted(PRINTED).endswith('evaluator says failure_reason: { "message": "CUDA is not available" }')
    assert admitted(PRINTED.replace("failure_reason", "reason")).endswith("traceback: ValueError: expected lines")
    assert admitted(PRINTED[: PRINTED.index("[failure")]) == ""


OFFLINE = """\
import socket, traceback

def evaluate(path):
    try:
        socket.create_connection(("no.where", 80))
    except OSError:
        traceback.print_exc()
    return {"combined_score": (0.5, 1), "failed": 0}
"""


@pytest.mark.slow
async def test_a_score_beside_which_an_evaluator_tells_of_an_error_is_no_seed_that_is_well(tmp_path: Path) -> None:
    caught = 'def evaluate(path):\n    return {"combined_score": 0.0, "error": "no cargo here"}\n'
    task = find_task(str(example(tmp_path, **{"evaluator.py": caught})))
    lacking = find_task(str(example(tmp_path / "2", **{"evaluator.py": f"import what_of_theirs\n{caught}"})))
    [failed] = [each async for each in judge_seed(lacking, ["train"], "bubblewrap")]
    assert advice(lacking, failed).startswith("Name the package that has what_of_theirs in a requirements.txt")
    judged = [each async for each in judge_seed(task, ["train"], "bubblewrap")]
    said = "train: the score of the seed may be that of a failure: the evaluator says error: no cargo here"
    assert problems(task, judged) == [said]
    within = caught.replace('"error": "no cargo here"', '"artifacts": \'{"error": "no cargo here"}\'')
    task = find_task(str(example(tmp_path / "4", **{"evaluator.py": within})))
    judged = [each async for each in judge_seed(task, ["train"], "bubblewrap")]
    assert [each.removesuffix('"}') for each in problems(task, judged)] == [said]
    silent = find_task(str(example(tmp_path / "3", **{"evaluator.py": OFFLINE})))
    judged = [each async for each in judge_seed(silent, ["train"], "bubblewrap")]
    [told] = problems(silent, judged)
    assert "the evaluator says combined_score_error: (0.5, 1) is no number" in told
    assert told.endswith(". There is no network in the sandbox.")


def test_a_candidate_that_fails_has_no_score_but_a_reason(tmp_path: Path) -> None:
    task = find_task(str(example(tmp_path)))
    done = evaluated(task, tmp_path / "box", **{"initial_program.py": "X = 1 / 0\n"})
    assert done.returncode != 0
    assert "ZeroDivisionError" in done.stderr
    assert "evaluate_openevolve.py" not in done.stderr


def test_a_folder_in_no_format_is_told_what_was_looked_for(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing")
    with pytest.raises(NotFoundError, match=r"task\.toml(.|\n)*initial_program\.\* with evaluator\.py"):
        find_task(str(tmp_path))
    example(tmp_path)
    with pytest.raises(NotFoundError, match=r"perhaps you mean .*my example"):
        find_task(str(tmp_path))


ARGUED = """\
def evaluate(program_path, length=10, *, fare=0.0):
    with open(program_path) as file:
        return {"combined_score": length * fare * len(file.readlines())}

def evaluate_stage1(program_path):
    return {"combined_score": -1.0}
"""
ARGUMENTS = "evaluator:\n  cascade_evaluation: false\n  evaluator_args:\n    length: 100\n    fare: 1.5\n"


def test_arguments_of_the_configuration_reach_the_evaluator_but_no_stage(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = {"evaluator.py": ARGUED, "config.yaml": ARGUMENTS}
    assert score(evaluated(find_task(str(example(tmp_path, **files))), tmp_path / "box")) == 450
    assert "evaluator_args" not in caplog.text
    staged = {**files, "config.yaml": ARGUMENTS.replace("false", "true")}
    assert score(evaluated(find_task(str(example(tmp_path / "2", **staged))), tmp_path / "box2")) == -1
    wrong = {**files, "config.yaml": ARGUMENTS.replace("fare", "price")}
    done = evaluated(find_task(str(example(tmp_path / "3", **wrong))), tmp_path / "box3")
    assert done.returncode != 0
    assert "do not fit evaluate(program_path, length=10, *, fare=0.0)" in done.stderr


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("evaluator:\n  score_scale: 10\n", "evaluator.score_scale"),
        ("evaluator:\n  evaluator_args: [1]\n", "evaluator.evaluator_args"),
        ("scoring:\n  a: 1\n", "scoring"),
        ("database:\n  fitness_metric: a\n", "database.fitness_metric"),
        ("evaluator:\n  timeout: 5\n  parallel_evaluations: 4\n  evaluator_args:\nearly_stopping_metric: a\n", ""),
        ("llm:\n  primary_model_weight: 0.5\nprompt:\n  num_top_programs: 3\n", ""),
        ("# nothing\n", ""),
    ],
)
def test_settings_that_may_change_the_score_and_are_unknown_are_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, setting: str, told: str
) -> None:
    find_task(str(example(tmp_path, **{"config.yaml": setting})))
    assert (f"sets {told}, which EvoGit does not know" in caplog.text) == bool(told)
    assert "cannot be read as YAML" not in caplog.text


@pytest.mark.parametrize(
    ("evaluator", "why"),
    [
        ("def evaluate(output, n=26, **kwargs):\n    return {'score': float(output)}\n", "evaluate(output)"),
        ("def evaluate(given):\n    return {'score': len(given['content'])}\n", "evaluate(given)"),
        ("def evaluate():\n    return {'score': 1}\n", "takes no program"),
        ("class Evaluator:\n    def evaluate(self, path): ...\n", "defines no evaluate(program_path)"),
    ],
)
def test_another_contract_is_not_taken_for_openevolves(tmp_path: Path, evaluator: str, why: str) -> None:
    with pytest.raises(NotFoundError, match=re.escape(why)):
        find_task(str(example(tmp_path, **{"evaluator.py": evaluator})))


@pytest.mark.parametrize(
    "evaluator",
    [
        "def evaluate(text):\n    return {'a': len(open(text).read())}\n",
        "if True:\n    from helper import half as evaluate\n",
        "async def evaluate(x):\n    return {'a': 1}\n",
        "def evaluate_stage1(path):\n    return {'a': 1}\n",
    ],
)
def test_evaluators_of_the_contract_may_call_its_parts_as_they_like(tmp_path: Path, evaluator: str) -> None:
    assert find_task(str(example(tmp_path, **{"evaluator.py": evaluator}))).editable == ("initial_program.py",)


FAILING = "import sys\n\ndef evaluate(path):\n    print({text!r}, file=sys.stderr)\n    sys.exit(1)\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("API keys come from a file\nx.sh: line 5: uvee: command not found", "The sandbox lacks uvee"),
        ("ModuleNotFoundError: No module named 'initial_program'", "initial_program is the program itself"),
        ("ModuleNotFoundError: No module named 'funsearch.core'", "funsearch belongs to another system"),
        ("go: downloading example.org/x v1\ndial tcp: lookup x: no such host", "There is no network in the sandbox."),
        ("KeyError: 'JUDGE_API_KEY'", "nor a key of yours"),
        ("the API keys of the table are sorted", "Its own evaluator refuses the seed"),
    ],
)
async def test_advice_names_the_cause(tmp_path: Path, text: str, cause: str) -> None:
    task = find_task(str(example(tmp_path, **{"evaluator.py": FAILING.format(text=text)})))
    [failed] = [each async for each in judge_seed(task, ["train"], "bubblewrap")]
    assert cause in advice(task, failed)
