from __future__ import annotations

from pathlib import Path

import pytest

from evogit.adopt import find_task
from evogit.core import NotFoundError
from tests.adopt.evaluating import evaluated, score, write

INITIAL = "from shared import START\n# EVOLVE-BLOCK-START\ndef run(n):\n    return START + n\n# EVOLVE-BLOCK-END\n"
EVALUATE = """\
import argparse
from shinka.core import run_shinka_eval
import shared

def valid(result):
    return result < 100, None if result < 100 else f"{result} is too large"

def add_up(results):
    return {"combined_score": float(sum(results)), "public": {"runs": len(results)}, "private": {"key": "secret"},
            "text_feedback": "the second one was better"}

parser = argparse.ArgumentParser()
parser.add_argument("--program_path")
parser.add_argument("--results_dir")
given = parser.parse_args()
metrics, correct, error = run_shinka_eval(
    program_path=given.program_path, results_dir=given.results_dir, experiment_fn_name="run", num_runs=2,
    get_experiment_kwargs=lambda n: {"n": n}, validate_fn=valid, aggregate_metrics_fn=add_up,
)
"""
RUN = """\
from shinka.launch import LocalJobConfig
job = LocalJobConfig(eval_program_path="evaluate.py", time="00:05:30")
words = "Make the sum large, and be quick."
config = dict(task_sys_msg=words)
import wandb
"""


def folder(place: Path, **more: str) -> Path:
    files = {"initial.py": INITIAL, "evaluate.py": EVALUATE, "run_evo.py": RUN, "shared.py": "START = 1\n"}
    return write(place / "sums", {**files, **more})


def test_a_shinkaevolve_folder_is_a_task_as_it_is(tmp_path: Path) -> None:
    task = find_task(str(folder(tmp_path)))
    assert (task.name, task.judged, task.primary.name) == ("sums", "inside", "combined_score")
    assert task.goal.startswith("Make the sum large, and be quick.")
    assert task.limits.wall == 330
    assert task.environment.packages == ()
    done = evaluated(task, tmp_path / "box")
    assert score(done) == 3
    assert "the second one was better" in done.stdout
    assert "secret" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    "said",
    [
        'from textwrap import dedent\nconfig = dict(task_sys_msg=dedent("""\\\n    Make {it}\n    large."""))',
        'WHAT = "large."\nconfig = dict(task_sys_msg=f"Make {{it}}\\n{WHAT}")'.replace("{{it}}", "{it}"),
        'from pathlib import Path\nconfig = dict(task_sys_msg=Path("prompt.md").read_text())',
        'text = "Make {it}"\ntext += "\\nlarge."\nconfig = dict(task_sys_msg=text)',
        'SAID = "Make {it}\\nlarge."\nconfig["evo"]["task_sys_msg"] = SAID + spec("x")',
        'config = {"task_sys_msg": "Make {it}\\nlarge."}',
    ],
)
def test_instructions_are_read_as_they_are_put_together(tmp_path: Path, said: str) -> None:
    task = find_task(str(folder(tmp_path, **{"run_evo.py": said, "prompt.md": "Make {it}\nlarge."})))
    assert task.goal.startswith("Make {it}\nlarge.")


def test_each_run_is_validated_before_the_next_one_is_done(tmp_path: Path) -> None:
    counting = EVALUATE.replace("    return result < 100", "    shared.START += 10\n    return result < 100")
    task = find_task(str(folder(tmp_path, **{"evaluate.py": counting})))
    counted = INITIAL.replace("from shared import START", "import shared").replace("START + n", "shared.START + n")
    assert score(evaluated(task, tmp_path / "box", **{"initial.py": counted})) == 1 + (11 + 1)


def test_a_program_that_is_not_correct_has_no_score(tmp_path: Path) -> None:
    task = find_task(str(folder(tmp_path)))
    wrong = evaluated(task, tmp_path / "box", **{"initial.py": "def run(n):\n    return 1000\n"})
    assert wrong.returncode != 0
    assert "1000 is too large" in wrong.stderr
    broken = evaluated(task, tmp_path / "box2", **{"initial.py": "def run(n):\n    return 1 / 0\n"})
    assert broken.returncode != 0
    assert "division by zero" in broken.stderr
    drawn = EVALUATE.replace('lambda n: {"n": n}', 'lambda n: {"n": shared.START + 1 // (1 - n)}')
    undrawn = find_task(str(folder(tmp_path / "drawn", **{"evaluate.py": drawn})))
    seen = evaluated(undrawn, tmp_path / "box3", **{"initial.py": INITIAL + "import shared\nshared.START = 2\n"})
    assert "by zero" in seen.stderr, "what the evaluator draws for a run fails like the run"


def test_what_a_folder_lacks_is_told_and_what_is_called_like_a_start_is_none(tmp_path: Path) -> None:
    place = folder(tmp_path, **{"runner.py": "X = 1\n", "initial.ipynb": "{}"})
    assert find_task(str(place)).editable == ("initial.py",)
    (place / "initial.ipynb").unlink()
    paths = find_task(str(place)).evaluator_files()
    assert "task/runner.py" in paths
    assert "task/run_evo.py" not in paths
    (place / "initial.py").rename(place / "initial_a.py")
    with pytest.raises(NotFoundError, match=r"its evaluate\.py has no initial\.\* beside it"):
        find_task(str(place))
    with pytest.raises(NotFoundError, match=r"initial\.py has no evaluate\.py beside it"):
        find_task(str(write(tmp_path / "2", {"initial.py": INITIAL, "main.py": ""})))
    with pytest.raises(NotFoundError, match=r"(?s)whole repository .*--repo_path.*evogit new NAME --from"):
        find_task(str(write(tmp_path / "3", {"evaluate.py": "# --repo_path\n", "seed_repo/a.py": ""})))


SCALED = """\
import argparse, json
parser = argparse.ArgumentParser()
for name, kind in (("program_path", str), ("results_dir", str), ("scale", float), ("word", str)):
    parser.add_argument(f"--{name}", type=kind, default=None)
given = parser.parse_args()
json.dump({"correct": True}, open(given.results_dir + "/correct.json", "w"))
score = (given.scale or 1.0) * len(given.word or "a")
json.dump({"combined_score": score}, open(given.results_dir + "/metrics.json", "w"))
"""
RUNS = "from shinka.launch import LocalJobConfig\n{before}job = LocalJobConfig(extra_cmd_args={arguments})\n"


@pytest.mark.parametrize(
    ("more", "scored", "told"),
    [
        ({"run_evo.py": RUNS.format(before="", arguments={"scale": 2.5, "word": "two words"})}, 22.5, ""),
        ({"run_evo.py": RUNS.format(before="WITH = {'scale': 4}\n", arguments="WITH")}, 4, ""),
        ({"run_evo.py": RUNS.format(before="", arguments="dict(scale=SCALE)")}, 1, "that only a run knows"),
        ({"shinka.yaml": "job_config:\n  extra_cmd_args:\n    scale: 3\n"}, 3, ""),
        (
            {"a.yaml": "job:\n  extra_cmd_args: {scale: 3}\n", "b.yaml": "job:\n  extra_cmd_args: {scale: 5}\n"},
            3,
            "different arguments",
        ),
        ({"run_evo.py": RUNS.format(before="", arguments={})}, 1, ""),
    ],
)
def test_arguments_of_a_configuration_reach_the_evaluator(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, more: dict[str, str], scored: float, told: str
) -> None:
    task = find_task(str(folder(tmp_path, **{"evaluate.py": SCALED, **more})))
    assert score(evaluated(task, tmp_path / "box")) == scored
    assert told in caplog.text
    assert ("arguments" in caplog.text) == bool(told)
