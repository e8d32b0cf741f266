from __future__ import annotations

from pathlib import Path

import pytest

from evogit.adopt import find_task
from evogit.review.checking import judge_seed
from tests.adopt.evaluating import evaluated, score, write

EVALUATE = """\
#!/usr/bin/env bash
python {home}/score.py "$1" "$2"
"""
SCORE = """\
import json, os, sys, tempfile
from importlib.util import find_spec
tempfile.TemporaryFile()
given = json.load(open("{home}/given.json"))
value = eval(open(sys.argv[1]).read())
print("noise")
said = {{"status": "success", "combined_score": value + given, "metrics": {{"share": 0.5}}}}
words = os.environ.get("WEIGHT", "") + os.environ.get("MODE", "") + str(find_spec("beside") is not None)
print(json.dumps({{**said, "artifacts": {{"mode": sys.argv[2], "words": words}}}}))
"""
DOCKERFILE = """\
FROM python:3.12-slim
WORKDIR /bench/here
ENV SCALE=2
ENV WEIGHT=$SCALE MODE="as it is" PYTHONPATH=/nowhere TMPDIR=/nowhere
RUN apt-get update && apt-get install -y --no-install-recommends libgomp1 \\
    && pip install --no-cache-dir "numpy>=1.26" -r requirements.txt
COPY . .
"""


def folder(place: Path, home: str) -> Path:
    files = {
        "initial_program.py": "2.5\n",
        "evaluator/evaluate.sh": EVALUATE.format(home=home),
        "evaluator/score.py": SCORE.format(home=home),
        "evaluator/given.json": "4",
        "evaluator/Dockerfile": DOCKERFILE,
        "config.yaml": "evaluator: {timeout: 30}\nprompt:\n  system_message: |-\n    Raise it.\n",
    }
    return write(place / "rise", files)


def test_a_container_of_skydiscover_is_a_task_without_one(tmp_path: Path) -> None:
    task = find_task(str(folder(tmp_path, ".")))
    assert task.judged == "inside"
    assert task.environment.links == ("/bench/here=.foreign/evaluator",)
    assert task.environment.packages == ("numpy>=1.26",)
    assert task.goal.startswith("Raise it.")
    done = evaluated(task, tmp_path / "box", str(write(tmp_path / "packages", {"beside.py": ""})))
    assert score(done) == 6.5
    assert "[mode] train" in done.stdout
    assert "[words] 2as it isTrue" in done.stdout, "its image's PYTHONPATH stands behind ours"


def test_older_and_newer_layouts_are_read_too(tmp_path: Path) -> None:
    place = folder(tmp_path, ".")
    (place / "evaluator").rename(place / "eval")
    task = find_task(str(place))
    assert task.environment.links == ("/bench/here=.foreign/eval",)
    assert score(evaluated(task, tmp_path / "box")) == 6.5
    (place / "eval" / "evaluate.sh").unlink()
    result = "from skydiscover.optimize.evaluation.evaluation_result import EvaluationResult as Result\n"
    (place / "eval" / "evaluator.py").write_text(
        result + "def evaluate(program_path):\n    return Result({'combined_score': 3.0})\n"
    )
    assert score(evaluated(find_task(str(place)), tmp_path / "box2")) == 3


@pytest.mark.parametrize(
    "script",
    [
        'MODE="$1"\npython score.py "$2" "$MODE"\n',
        '# MODE ($1) is ignored\nPROGRAM="$2"\npython score.py "$PROGRAM" train\n',
        'PROGRAM="$1"\nMODE="${2:-train}"\npython score.py "$PROGRAM" "$MODE"\n',
        'SPLIT=$2  # the mode\npython score.py "$1" "$SPLIT"\n',
    ],
)
def test_a_container_may_take_the_mode_first_and_its_exit_code_counts(tmp_path: Path, script: str) -> None:
    place = folder(tmp_path, ".")
    (place / "evaluator" / "evaluate.sh").write_text(script)
    assert score(evaluated(find_task(str(place)), tmp_path / "box")) == 6.5
    (place / "evaluator" / "evaluate.sh").write_text(f"{script}exit 3\n")
    failed = evaluated(find_task(str(place)), tmp_path / "box2")
    assert (failed.returncode, "exit code 3" in failed.stderr) == (1, True)


def test_a_container_that_takes_too_long_scores_nothing_as_there(tmp_path: Path) -> None:
    place = folder(tmp_path, ".")
    (place / "config.yaml").write_text("evaluator: {timeout: 0.5}\n")
    (place / "evaluator" / "evaluate.sh").write_text("echo begun\nsleep 1000 & sleep 1000\n")
    done = evaluated(find_task(str(place)), tmp_path / "box")
    assert score(done) == 0
    assert "[timeout] evaluate.sh took longer than 0.5 s" in done.stdout


@pytest.mark.parametrize(
    ("recipe", "links"),
    [
        ("COPY . /elsewhere/", {"/bench/here=.foreign/evaluator", "/elsewhere=.foreign/image/elsewhere"}),
        ("COPY . /bench/", {"/bench=.foreign/evaluator"}),
        ("COPY evaluate.sh .\nCOPY score.py given.json /bench/", {"/bench=.foreign/evaluator"}),
        ("COPY . .\nCOPY given.json /etc/", {"/bench/here=.foreign/evaluator"}),
    ],
)
def test_all_that_its_image_has_is_where_its_programs_expect_it(
    recipe: str, links: set[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = folder(tmp_path, ".." if "evaluate.sh" in recipe else ".")
    (place / "evaluator" / "Dockerfile").write_text(f"FROM x\nWORKDIR /bench/here\n{recipe}\n")
    if "evaluate.sh" in recipe:
        (place / "evaluator" / "score.py").write_text(SCORE.format(home=".."))
    task = find_task(str(place))
    assert set(task.environment.links) == links
    assert ("/etc/given.json" in caplog.text) == ("/etc" in recipe)
    assert score(evaluated(task, tmp_path / "box")) == 6.5


@pytest.mark.slow
@pytest.mark.parametrize("workdir", ["/bench/here", "/work"])
async def test_in_a_sandbox_it_finds_its_files_where_its_image_has_them(tmp_path: Path, workdir: str) -> None:
    place = folder(tmp_path, "/bench/here")
    recipe = f"FROM scratch\nWORKDIR {workdir}\nCOPY . /bench/here\n"
    (place / "evaluator" / "Dockerfile").write_text(recipe)
    found = [each async for each in judge_seed(find_task(str(place)), ["train"], "bubblewrap")]
    assert found[0].evaluation.metrics == {"combined_score": 6.5}, found[0].evidence
    assert found[0].evaluation.judged == "inside"
    assert found[0].evaluation.cases == {"command": {"combined_score": 6.5, "share": 0.5}}
