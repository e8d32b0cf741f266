from __future__ import annotations

from pathlib import Path

import pytest

from evogit.adopt import find_task
from evogit.review.checking import judge_seed
from tests.adopt.evaluating import evaluated, score, write

TASK = """\
schema_version = "1.1"
[verifier]
timeout_sec = 90.0
env = { PASS = "yes", KEY = "${KEY}" }
[agent]
timeout_sec = 120.0
"""
DOCKERFILE = "FROM ubuntu:24.04\nRUN apt-get update && apt-get install -y curl\nWORKDIR /work/here\n{copy}"
TEST = """\
#!/bin/bash
apt-get update
apt-get install -y curl
curl -LsSf https://example.org/install.sh | sh
source $HOME/.local/bin/env
uvx -p 3.13 -w pytest==8.4.1 python {tests}/check.py
if [ $? -eq 0 ]; then echo 1 > {logs}/verifier/reward.txt; else echo 0.25 > {logs}/verifier/reward.txt; fi
"""
CHECK = "import sys\nsys.exit(open('{where}greeting.txt').read() != 'hello')\n"


def folder(place: Path, *, tests: str, logs: str, where: str, copy: str = "") -> Path:
    files = {
        "task.toml": TASK,
        "instruction.md": "Write the word hello into `/work/here/greeting.txt`.\n",
        "environment/Dockerfile": DOCKERFILE.format(copy=copy),
        "environment/data/words.txt": "hello\n",
        "tests/test.sh": TEST.format(tests=tests, logs=logs),
        "tests/check.py": CHECK.format(where=where),
        "solution/solve.sh": "echo hello > greeting.txt\n",
    }
    return write(place / "greet", files)


def test_a_harbor_task_is_a_task_as_it_is(tmp_path: Path) -> None:
    task = find_task(str(folder(tmp_path, tests="$TEST_DIR", logs="$LOGS_DIR", where="")))
    assert (task.primary.name, task.judged, task.limits.wall) == ("reward", "inside", 90)
    assert task.seed_files().keys() == {"greeting.txt"}
    assert task.is_editable("any/file.py")
    assert not any("solve" in path for path in task.evaluator_files())
    assert "pytest==8.4.1" in task.environment.packages
    assert task.command
    assert task.command.text.startswith("env PASS=yes python3 ")
    assert score(evaluated(task, tmp_path / "box")) == 0.25
    assert score(evaluated(task, tmp_path / "box2", **{"greeting.txt": "hello"})) == 1


def test_what_an_image_copies_is_the_seed_or_lies_where_programs_expect_it(tmp_path: Path) -> None:
    copy = "COPY data/words.txt ./list/\nCOPY data /data\n"
    task = find_task(str(folder(tmp_path, tests="", logs="", where="", copy=copy)))
    assert task.seed_files().keys() == {"list/words.txt"}
    assert "/data=.foreign/image/data" in task.environment.links
    assert "task/image/data/words.txt" in task.evaluator_files()


@pytest.mark.slow
async def test_in_a_sandbox_it_has_the_paths_of_its_image(tmp_path: Path) -> None:
    place = folder(
        tmp_path, tests="/tests", logs="/logs", where="/work/here/", copy="COPY data/words.txt greeting.txt\n"
    )
    text = (place / "tests" / "test.sh").read_text().replace("-w pytest==8.4.1", "")
    (place / "tests" / "test.sh").write_text(text)
    (place / "environment" / "data" / "words.txt").write_text("hello")
    found = [each async for each in judge_seed(find_task(str(place)), ["train"], "bubblewrap")]
    assert found[0].evaluation.metrics == {"reward": 1.0}, found[0].evidence


def test_a_working_folder_of_the_system_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    place = folder(tmp_path, tests="", logs="", where="")
    (place / "environment" / "Dockerfile").write_text("FROM x\nWORKDIR /usr/src/app\n")
    task = find_task(str(place))
    assert not any(link.startswith("/usr") for link in task.environment.links)
    assert "expect /usr/src/app" in caplog.text
