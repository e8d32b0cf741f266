from __future__ import annotations

import re
from pathlib import Path

import pytest

from evogit.adopt import find_task, sources
from evogit.core import NotFoundError
from evogit.review.checking import advice, judge_seed
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
    assert """'{"PASS": "yes"}'""" in task.command.text
    assert score(evaluated(task, tmp_path / "box")) == 0.25
    assert score(evaluated(task, tmp_path / "box2", **{"greeting.txt": "hello"})) == 1


def test_what_an_image_copies_is_the_seed_or_lies_where_programs_expect_it(tmp_path: Path) -> None:
    copy = "COPY data/words.txt ./list/\nCOPY data /data\n"
    task = find_task(str(folder(tmp_path, tests="", logs="", where="", copy=copy)))
    assert task.seed_files().keys() == {"list/words.txt"}
    assert "/data=.foreign/image/data" in task.environment.links
    assert "task/image/data/words.txt" in task.evaluator_files()


def test_all_files_of_the_image_and_the_verifier_come_along(tmp_path: Path) -> None:
    place = folder(tmp_path, tests="", logs="", where="", copy="COPY . .\n")
    brought = {".env", ".github/ci.yml", "README.md", "logs/a.txt", "venv/x.py", "docs/a.png", "keep.tmp", ".gitignore"}
    verifier = {"solution/a.json", "expected_output/a.json", ".hidden/a.json", "results/a.json", "a.log"}
    write(place / "environment", dict.fromkeys(brought | {".git/HEAD", "a.tmp", "deep/b.tmp"}, "x"))
    write(place / "environment", {".dockerignore": "# temporary\n**/*.tmp\n!keep.tmp\n"})
    write(place / "tests", dict.fromkeys(verifier | {"__pycache__/a.pyc"}, "x"))
    task = find_task(str(place))
    assert task.seed_files().keys() == brought | {".dockerignore", "data/words.txt"}
    assert {path for path in task.evaluator_files() if path.startswith("task/")} == {
        f"task/tests/{path}" for path in verifier | {"test.sh", "check.py"}
    }


def test_files_that_are_too_large_stay_and_are_named(tmp_path: Path, caplog, monkeypatch) -> None:
    monkeypatch.setattr(sources, "LARGEST", 2000)
    place = folder(tmp_path, tests="", logs="", where="", copy="COPY big.png small.png ./\n")
    write(place / "environment", {"big.png": "1" * 3000, "small.png": "1"})
    assert find_task(str(place)).seed_files().keys() == {"small.png"}
    assert "big.png: left out, as no more than" in caplog.text


def test_what_an_image_has_beside_its_working_folder_is_the_candidates_too(tmp_path: Path) -> None:
    copy = "COPY data/words.txt greeting.txt\nCOPY data /work/data\nCOPY data/words.txt /srv/\n"
    task = find_task(str(folder(tmp_path, tests="$TEST_DIR", logs="$LOGS_DIR", where="", copy=copy)))
    assert task.seed_files().keys() == {"here/greeting.txt", "data/words.txt"}
    assert {link for link in task.environment.links if link.startswith("/work")} == {"/work=."}
    assert "/srv=.foreign/image/srv" in task.environment.links
    assert "files of `/work`; programs start in `/work/here`" in task.goal
    assert score(evaluated(task, tmp_path / "box", **{"here/greeting.txt": "hello"})) == 1


@pytest.mark.parametrize(
    ("named", "links", "seed"),
    [
        ("/output/plan.json", {"/output=output"}, {"output/plan.json"}),
        ("/srv/plan.json", {"/srv=srv"}, {"srv/words.txt", "srv/plan.json"}),
        ("/srv/words.txt", {"/srv=.foreign/image/srv"}, {"solution.py"}),
        ("/tmp/plan.json", set(), {"tmp/plan.json"}),
        ("/work/plan.json", {"/work=."}, {"plan.json"}),
        ("/usr/share/plan.json", set(), {"solution.py"}),
    ],
)
def test_what_the_instructions_name_beside_the_working_folder_is_the_candidates(
    named: str, links: set[str], seed: set[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = folder(tmp_path, tests="", logs="", where="", copy="COPY data/words.txt /srv/\n")
    (place / "instruction.md").write_text(f"Write the plan to `{named}`.")
    task = find_task(str(place))
    usual = {"/work/here=.", "/srv=.foreign/image/srv", "/tests=.foreign/tests", "/logs=.foreign-logs"}
    assert (set(task.environment.links) - usual, task.seed_files().keys()) == (links - usual, seed)
    assert ("`/output` is `output` there" in task.goal) == ("output" in named)
    assert ("its instructions name /usr/share/plan.json, where" in caplog.text) == ("usr" in named)


@pytest.mark.slow
async def test_in_a_sandbox_a_candidate_has_files_beside_the_working_folder(tmp_path: Path) -> None:
    place = folder(tmp_path, tests="", logs="", where="", copy="COPY data/words.txt /output/\n")
    (place / "instruction.md").write_text("Write to `/tmp/plan.json` and `/output/plan.json`.")
    (place / "tests" / "test.sh").write_text(
        "cat /tmp/plan.json && wc -c < /output/words.txt > /logs/verifier/reward.txt"
    )
    found = [each async for each in judge_seed(find_task(str(place)), ["train"], "bubblewrap")]
    assert found[0].evaluation.metrics == {"reward": 6.0}, found[0].evidence


def test_a_task_of_several_steps_is_refused(tmp_path: Path) -> None:
    place = folder(tmp_path, tests="", logs="", where="")
    (place / "task.toml").write_text(TASK + "[[steps]]\nname = 'one'\n[[steps]]\nname = 'two'\n")
    with pytest.raises(NotFoundError, match="2 steps"):
        find_task(str(place))


def test_an_image_whose_programs_work_in_all_of_it(tmp_path: Path) -> None:
    place = folder(
        tmp_path, tests="$TEST_DIR", logs="$LOGS_DIR", where="work/here/", copy="WORKDIR /\nCOPY data /data\n"
    )
    task = find_task(str(place))
    assert task.seed_files().keys() == {"data/words.txt"}
    assert {"/data=data", "/work=work"} <= set(task.environment.links)
    assert score(evaluated(task, tmp_path / "box", **{"work/here/greeting.txt": "hello"})) == 1


def test_files_of_the_systems_folders_are_linked_or_laid_or_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    places = ("/root/", "/opt/x", "/home/me/", "/var/lib/x/", "/tmp/", "/etc/x.txt", "/usr/share/x/", "/tests/more/")
    copy = "\n".join(f"COPY data/words.txt {path}" for path in places)
    place = folder(tmp_path, tests="$TEST_DIR", logs="$LOGS_DIR", where="", copy=copy)
    (place / "tests" / "check.py").write_text(
        "import os, sys\nsys.exit(open(os.environ['TMPDIR'] + '/words.txt').read() != 'hello\\n')\n"
    )
    task = find_task(str(place))
    links = {f"/{top}=.foreign/image/{top}" for top in ("root", "opt", "home", "var")}
    assert links == set(task.environment.links) - {"/work/here=.", "/tests=.foreign/tests", "/logs=.foreign-logs"}
    assert {"task/image/home/me/words.txt", "task/tests/more/words.txt"} <= task.evaluator_files().keys()
    assert "its image has /etc/x.txt, /usr/share/x/words.txt, where a sandbox has the system" in caplog.text
    assert score(evaluated(task, tmp_path / "box")) == 1


@pytest.mark.slow
@pytest.mark.parametrize("beside", ["", "COPY data /work/data/\nCOPY data /opt/data/\n"])
async def test_in_a_sandbox_it_has_the_paths_of_its_image(tmp_path: Path, beside: str) -> None:
    copy = f"COPY data/words.txt greeting.txt\n{beside}"
    place = folder(tmp_path, tests="/tests", logs="/logs", where="/work/here/", copy=copy)
    if beside:
        check = place / "tests" / "check.py"
        check.write_text("open('/work/data/words.txt')\nopen('/opt/data/words.txt')\n" + check.read_text())
    check = place / "tests" / "check.py"
    check.write_text("import os\nopen('/made/here/a', 'w')\n" + check.read_text())
    text = (place / "tests" / "test.sh").read_text().replace("-w pytest==8.4.1", "")
    (place / "tests" / "test.sh").write_text(
        "#!/bin/bash -e\nmkdir -p /made/here /logs/verifier\n. /root/.cargo/env; set +e\n" + text
    )
    (place / "environment" / "data" / "words.txt").write_text("hello")
    found = [each async for each in judge_seed(find_task(str(place)), ["train"], "bubblewrap")]
    assert found[0].evaluation.metrics == {"reward": 1.0}, found[0].evidence


IMAGE = """\
FROM python:3.12
WORKDIR /work/here
RUN mkdir -p /work/out /srv/deep /etc/none /tmp/z
COPY data/words.txt /opt/
ENV PYTHONPATH=/work/here/src PATH=/work/here/bin:$PATH MODE=fast HOME=/nowhere
COPY mine bin/mine
COPY mine bin/pip
COPY part.py src/
"""
RUNS_IT = """\
set -e
pip install nothing
python3 -c 'import part, sys; from os import environ as found; assert found["TIER"] + found["KIND"] == "abc"'
pytest --version
python3 -m pip download pytest > log 2>&1 || true
if grep Retrying log; then exit 1; fi
test -d $HOME
touch /work/out/a /srv/deep/b /answer/c /tmp/z/d
mine > /logs/verifier/reward.txt
"""


@pytest.mark.slow
async def test_a_verifier_finds_the_variables_and_folders_of_the_image(tmp_path: Path) -> None:
    place = folder(tmp_path, tests="", logs="", where="")
    files = {"Dockerfile": IMAGE, "mine": "#!/bin/sh\n[ $MODE = fast ] && echo 7\n", "part.py": ""}
    write(place / "environment", files)
    (place / "environment" / "mine").chmod(0o755)
    write(place, {"tests/test.sh": RUNS_IT, "instruction.md": "Write `/answer/c.txt`."})
    given = "[environment.env]\nTIER = '${TIER:-a}'\nKIND = 'x'\n[verifier.env]\nKIND = 'bc'\nMODE = '${MODE}'\n"
    (place / "task.toml").write_text(given)
    found = [each async for each in judge_seed(find_task(str(place)), ["train"], "bubblewrap")]
    assert found[0].evaluation.metrics == {"reward": 7.0}, found[0].evidence


@pytest.mark.parametrize(
    ("text", "memory", "disk"),
    [
        ("", 4096, 512),
        ("memory_mb = 2048\nstorage_mb = 10240\n", 4096, 10240),
        ("memory = '8G'\nstorage = '700MB'\n", 8192, 700),
        ("[verifier.environment]\nmemory_mb = 5000\n", 5000, 512),
    ],
)
def test_a_task_has_the_memory_and_the_disk_that_it_asks_for(text: str, memory: int, disk: int, tmp_path: Path) -> None:
    place = folder(tmp_path, tests="", logs="", where="")
    (place / "task.toml").write_text(f"[environment]\n{text}")
    limits = find_task(str(place)).limits
    assert (limits.memory >> 20, limits.disk >> 20) == (memory, disk)


@pytest.mark.slow
async def test_that_a_verifier_wrote_no_reward_is_said_in_words_of_its_own(tmp_path: Path) -> None:
    place = folder(tmp_path, tests="", logs="", where="")
    for script, said in (
        ("exit 4", "The verifier itself wrote no reward"),
        ("no-such -x", "The sandbox lacks no-such"),
    ):
        (place / "tests" / "test.sh").write_text(f"set -e\ntest $PWD = /work/here\n{script}\n")
        task = find_task(str(place))
        found = [each async for each in judge_seed(task, ["train"], "bubblewrap")]
        assert advice(task, found[0]).startswith(said)


def test_what_an_image_does_otherwise_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    place = folder(tmp_path, tests="", logs="", where="", copy="RUN make data\n")
    write(place / "tests", {"a.sh": "sudo chroot /x\n", "b.py": "run(['strace', 'ls'])  # mount\n"})
    services = {"docker-compose.yaml": "services:\n  main:\n    a: b\n  tool:\n    image: x\n  db: {image: y}\n"}
    find_task(str(write(place, {f"environment/{name}": text for name, text in services.items()})))
    assert 'its image has "make data", which is not done here' in caplog.text
    assert "its verifier runs chroot, strace, which a sandbox forbids" in caplog.text
    assert "its docker-compose.yaml is not read" in caplog.text
    (place / "environment" / "Dockerfile").unlink()
    images = "docker_image = 'team/x:1'\ngpus = 1\n[verifier.environment]\ncpus = 1\n"
    images += "[[verifier.collect]]\ncommand = 'x'\n"
    (place / "task.toml").write_text(f"[environment]\n{images}")
    find_task(str(place))
    assert "its image begins as team/x:1: what that brings is not known here" in caplog.text
    assert "its verifier has an image of its own there" in caplog.text
    assert "(collect), which is not done here" in caplog.text
    assert "it asks for a graphics processor" in caplog.text


def test_a_task_toml_may_say_the_working_folder(tmp_path: Path) -> None:
    place = folder(tmp_path, tests="$TEST_DIR", logs="$LOGS_DIR", where="", copy="COPY data /other/\n")
    (place / "task.toml").write_text("[environment]\nworkdir = '/other'\n")
    task = find_task(str(place))
    assert task.seed_files().keys() == {"words.txt"}
    assert score(evaluated(task, tmp_path / "box", **{"greeting.txt": "hello"})) == 1


def test_a_file_that_the_image_has_not_is_not_there_while_it_is_empty(tmp_path: Path) -> None:
    place = folder(tmp_path, tests="", logs="", where="")
    (place / "tests" / "test.sh").write_text("test -e greeting.txt\necho $? > $LOGS_DIR/verifier/reward.txt\n")
    task = find_task(str(place))
    assert score(evaluated(task, tmp_path / "box")) == 1
    assert score(evaluated(task, tmp_path / "box2", **{"greeting.txt": " "})) == 0


@pytest.mark.parametrize(
    ("command", "packages"),
    [
        ("uv add pytest==8.4.1 'numpy[x]>=1.26' --dev --index x y@1.2", {"pytest==8.4.1", "numpy[x]>=1.26", "y==1.2"}),
        ("uvx --from harbor-rewardkit rewardkit numpy", {"harbor-rewardkit"}),
        (
            "uvx --with harbor-rewardkit@0.1 -w=a,b[c,d]>=1,<2 ruff@latest x",
            {"harbor-rewardkit==0.1", "a", "b[c,d]>=1,<2", "ruff"},
        ),
        ("uv --project p tool run --from 'a==1' b && pipx run --spec c d", {"a==1", "c"}),
        ("sudo uv tool install --with a b  # uvx c\nuv run --with d e f", {"a", "b", "d"}),
        ("uv pip install --system a > /dev/null 2>&1; /x/bin/pip install b; echo pip install c", {"a", "b"}),
    ],
)
def test_packages_are_those_that_a_verifier_names(
    command: str, packages: set[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = folder(tmp_path, tests="", logs="", where="")
    (place / "tests" / "test.sh").write_text(command)
    assert set(find_task(str(place)).environment.packages) - {"pytest"} == packages - {"pytest"}
    assert "uvx" not in caplog.text


def test_of_lists_of_packages_those_count_that_are_installed(tmp_path: Path) -> None:
    image = (
        "COPY needs.txt /tmp/",
        "RUN pip install --require-hashes -r /tmp/needs.txt && rm /tmp/needs.txt",
        "RUN --mount=type=bind,source=more.txt,target=/tmp/more.txt pip install -r /tmp/more.txt",
        "COPY pyproject.toml ./",
        "RUN uv pip install --system -e '.[dev]'",
        "COPY broken broken",
    )
    place = folder(tmp_path, tests="", logs="", where="", copy="\n".join(image))
    lists = {
        "needs.txt": "# x\na==1 \\\n    --hash=sha256:0 \\\n    --hash=sha256:1\nb==2 --hash=sha256:2\n",
        "more.txt": "c\n",
        "pyproject.toml": "[project]\ndependencies = ['d>1']\n",
        "broken/requirements.txt": "no==1\n",
    }
    write(place / "environment", lists)
    write(
        place / "tests", {"test.sh": "pip install -r /tests/mine.txt\n", "mine.txt": "e\n", "requirements.txt": "f\n"}
    )
    assert find_task(str(place)).environment.packages == ("a==1", "b==2", "c", "d>1", "e", "f")


@pytest.mark.parametrize("verifier", ["", "uvx -w numpy pytest", "pip install 'numpy>=1'", "uvx -w numpy==2 pytest"])
def test_a_version_that_the_image_asks_for_is_not_lost(verifier: str, tmp_path: Path) -> None:
    place = folder(tmp_path, tests="", logs="", where="", copy="RUN pip install numpy==2.3.0\nRUN pip install numpy\n")
    write(place / "tests", {"test.sh": verifier, "check.py": "import numpy\n"})
    wanted = "numpy>=1" if ">=" in verifier else "numpy==2" if "==" in verifier else "numpy==2.3.0"
    assert wanted in find_task(str(place)).environment.packages


def test_a_tool_is_no_package_that_somebody_may_have_registered(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = folder(tmp_path, tests="", logs="", where="")
    (place / "tests" / "test.sh").write_text("uvx rewardkit /tests\nuvx python x.py\nuvx --with a a\n")
    assert find_task(str(place)).environment.packages == ("a",)
    assert caplog.text.count("uvx") == 1
    assert "it runs `uvx rewardkit` without a package that is known" in caplog.text


def test_what_uv_would_run_is_run_and_nothing_else(tmp_path: Path) -> None:
    place = folder(tmp_path, tests="$TEST_DIR", logs="$LOGS_DIR", where="")
    commands = (
        "uv init",
        "uv add pytest",
        "uv --project . run --extra x echo 1",
        "uv tool run -w x echo 2",
        "uvx echo@1 3",
    )
    activated = ("uv venv -q -p 3.12 a/b", "source a/b/bin/activate", "uv venv", "uv venv", ". .venv/bin/activate")
    others = (
        "uv run -m textwrap",
        "a/b/bin/python -c 'print(6)'",
        "uv run -- echo 4",
        "uv python install 3.13",
        "pipx install x",
        "pipx run echo 5",
    )
    script = "\n".join([*commands, *activated, *others, "echo 1 > $LOGS_DIR/verifier/reward.txt"])
    (place / "tests" / "test.sh").write_text(f"set -e\n{script}\n")
    done = evaluated(find_task(str(place)), tmp_path / "box")
    assert score(done) == 1
    assert re.findall(r"^(\d|Hello)", done.stdout, re.MULTILINE) == ["1", "2", "3", "Hello", "6", "4", "5"]


AS_ROOT = """\
#!/bin/bash -e
su nobody -s /bin/sh -c 'test "$0" = 1' 1
runuser -u nobody -- test 2
setpriv --reuid=65534 --regid 65534 --clear-groups -- test 3
sudo -u nobody -E A=4 sh -c 'test $A = 4'
chown -R nobody here
test -f $LOGS_DIR/verifier/test-stdout.txt
echo 0.5 > $LOGS_DIR/verifier/reward.json
false
echo 1 > $LOGS_DIR/verifier/reward.json
"""


def test_a_verifier_is_started_as_harbor_does(tmp_path: Path) -> None:
    place = folder(tmp_path, tests="", logs="", where="")
    (place / "tests" / "test.sh").write_text(AS_ROOT)
    assert score(evaluated(find_task(str(place)), tmp_path / "box")) == 0.5


@pytest.mark.parametrize(
    ("script", "scored"),
    [
        ("set -e\necho 2 failed, 1 passed; false\necho 1 > $LOGS_DIR/verifier/reward.txt", True),
        ("set -e\necho 0 failed; false\necho 1 > $LOGS_DIR/verifier/reward.txt", False),
        ("echo 2 failed, 1 passed\nexit 1", False),
        ("python3 -c 'assert 0, \"reward\"'", True),
    ],
)
def test_a_verifier_that_ends_where_tests_fail_scores_0(script: str, scored: bool, tmp_path: Path) -> None:
    place = folder(tmp_path, tests="", logs="", where="")
    (place / "tests" / "test.sh").write_text(script)
    done = evaluated(find_task(str(place)), tmp_path / "box")
    assert score(done) == 0 if scored else "left no reward" in done.stderr


def test_commands_that_packages_bring_are_there(tmp_path: Path) -> None:
    place = folder(tmp_path, tests="", logs="", where="")
    (place / "tests" / "test.sh").write_text("grade 0.25 > $LOGS_DIR/verifier/reward.txt; uvx --from x grade 1\n")
    points = "[console_scripts]\ngrade = grader.deep:Main.run\n[other]\ncat = x:y\n"
    source = "import sys\nclass Main:\n    def run():\n        print(sys.argv[1])\n"
    brought = {"grader-1.dist-info/entry_points.txt": points, "grader/deep.py": source}
    packages = write(tmp_path / "packages", brought)
    assert score(evaluated(find_task(str(place)), tmp_path / "box", packages=str(packages))) == 0.25


@pytest.mark.parametrize(
    ("json_file", "text", "reward"),
    [
        ('{"tests_passed": 1, "tests_total": 20, "pass_rate": 0.05}', "0.05", 0.05),
        ('{"reward": 0.5, "tests_total": 20}', "0.7", 0.5),
        ('{"score": 7, "tests_total": 20}', "", 7),
        ('{"pass_rate": 0.25, "all_passed": false}', "", 0.25),
        ('{"reward": true, "cases": 3}', "", 1),
        ('{"correctness": 0.5, "style": 1}', "", 0.75),
        ("0.5", "", 0.5),
        ('{"passed": true, "done": false}', "0.1", 0.1),
    ],
)
def test_the_reward_is_what_a_verifier_calls_so(json_file: str, text: str, reward: float, tmp_path: Path) -> None:
    place = folder(tmp_path, tests="", logs="", where="")
    left = f"cd $LOGS_DIR/verifier\ncat > reward.json <<'END'\n{json_file}\nEND\n"
    (place / "tests" / "test.sh").write_text(left + (f"echo {text} > reward.txt\n" if text else ""))
    assert score(evaluated(find_task(str(place)), tmp_path / "box")) == reward


@pytest.mark.parametrize(
    ("json_file", "unlike"),
    [
        ('{"tests_passed": 1, "tests_total": 20, "pass_rate": 0.05}', "tests_passed = 1, tests_total = 20"),
        ('{"accuracy": 0.5, "latencyMs": 0.2}', "latencyMs = 0.2"),
        ('{"quality": 3.5, "depth": 0.2}', "quality = 3.5"),
        ('{"errors": 0, "recall": 0.1}', "errors = 0"),
    ],
)
def test_no_mean_is_made_of_unlike_quantities(json_file: str, unlike: str, tmp_path: Path) -> None:
    place = folder(tmp_path, tests="", logs="", where="")
    (place / "tests" / "test.sh").write_text(f"cat > $LOGS_DIR/verifier/reward.json <<'END'\n{json_file}\nEND\n")
    done = evaluated(find_task(str(place)), tmp_path / "box")
    assert done.returncode != 0
    assert unlike in done.stderr
