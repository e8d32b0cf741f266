"""Task folders and runs of strangers whose files are links, pipes or devices: nothing of this machine is read."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from evogit.adopt import find_task, recognise
from evogit.adopt.past_runs import read_past
from evogit.agents.briefs.briefing import _template
from evogit.contained import file_at, has_file
from evogit.core import ConfigError, EvoGitError, NotFoundError
from tests.adopt.evaluating import write

CANARY = "sk-canary-0123456789"
EVALUATOR = "def evaluate(program_path):\n    return {'combined_score': 1.0}\n"
OWN = 'name = "t"\neditable = ["p.py"]\n[metrics.score]\ndirection = "maximize"\n[evaluator]\n'
PYTHON = f'{OWN}kind = "python"\nfile = "evaluator/evaluate.py"\n'
COMMAND = f'{OWN}kind = "command"\ncommand = "true"\nread.score = "json"\n'
SCOPE = "# Loss\n\n**Primary**: loss (lower is better)\n\n## Files in Scope\n- `train.py`\n"
FORMATS: dict[str, dict[str, str]] = {
    "openevolve": {"evaluator.py": EVALUATOR, "initial_program.py": "", "config.yaml": "a: 1"},
    "template": {
        "evaluator.py": EVALUATOR,
        "initial_program.py": "",
        "config.yaml": "prompt:\n  template_dir: t",
        "t/system_message.txt": "a b",
    },
    "shinka": {"evaluate.py": "# --program_path\n", "initial.py": "x = 1\n", "run.yaml": "a: 1"},
    "skydiscover": {"initial_program.py": "", "evaluator/evaluate.sh": "", "evaluator/evaluator.py": EVALUATOR},
    "skydiscover_python": {"initial_program.py": "", "evaluator/evaluator.py": EVALUATOR},
    "harbor": {
        "instruction.md": "do it",
        "tests/test.sh": "echo 1 > /logs/verifier/reward.txt\n",
        "environment/Dockerfile": "FROM python\nWORKDIR /app\nCOPY a.txt /app/\n",
        "environment/a.txt": "a",
        "task.toml": "[verifier]\n",
    },
    "autoresearch": {
        "autoresearch.md": SCOPE,
        "train.py": "print('METRIC loss=' + str(1.0))\n",
        "autoresearch.sh": "python3 train.py\n",
        "autoresearch.jsonl": '{"type": "config", "metricName": "loss", "bestDirection": "lower"}\n',
    },
    "script": {
        "bench.py": "import helper\nprint('METRIC score=' + open('data.txt').read())\n",
        "helper.py": "",
        "data.txt": "1",
    },
    "own": {
        "goal.md": "do it",
        "seed/p.py": "",
        "evaluator/evaluate.py": "",
        "evogit-brief/proposal.md": "x",
        "task.toml": PYTHON,
    },
    "own_command": {"goal.md": "do it", "seed/p.py": "", ".evogit/hidden.txt": "", "task.toml": COMMAND},
}
PLACES = [(name, place) for name, files in FORMATS.items() for place in files]
FOLDERS = [(name, place) for name, place in PLACES if "/" in place]


def taken(folder: Path, name: str) -> str:
    """All that reading the task takes along: for agents, for candidates, or beside the evaluator."""
    task = find_task(str(folder / "bench.py" if name == "script" else folder))
    files = {**task.seed_files(), **task.evaluator_files()}
    return "\n".join([task.goal, *(data.decode(errors="replace") for data, _ in files.values())])


@pytest.mark.parametrize("target", ["file", "environment"])
@pytest.mark.parametrize(("name", "place"), PLACES)
def test_a_link_out_of_a_task_folder_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, place: str, target: str
) -> None:
    (tmp_path / "secret").write_text(f"x = '{CANARY}'\n")
    write(tmp_path / "task", FORMATS[name])
    (tmp_path / "task" / place).unlink()
    home = f"HOME={os.environ.get('HOME')}"  # /proc/self/environ has what the process began with
    (tmp_path / "task" / place).symlink_to(tmp_path / "secret" if target == "file" else "/proc/self/environ")
    with suppress(EvoGitError):
        text = taken(tmp_path / "task", name)
        assert CANARY not in text
        assert home not in text


@pytest.mark.parametrize(("name", "place"), FOLDERS)
def test_a_link_in_place_of_a_folder_of_a_task_is_not_followed(tmp_path: Path, name: str, place: str) -> None:
    write(tmp_path / "task", FORMATS[name])
    folder = tmp_path / "task" / place.partition("/")[0]
    (tmp_path / "task" / place).write_text(f"{FORMATS[name][place]}\n# {CANARY}\n")
    shutil.move(folder, tmp_path / "away")
    folder.symlink_to(tmp_path / "away")
    with suppress(EvoGitError):
        assert CANARY not in taken(tmp_path / "task", name)


@pytest.mark.parametrize(("name", "place"), PLACES)
def test_a_pipe_in_a_task_folder_is_not_waited_for(tmp_path: Path, name: str, place: str) -> None:
    write(tmp_path / "task", FORMATS[name])
    (tmp_path / "task" / place).unlink()
    os.mkfifo(tmp_path / "task" / place)
    with suppress(EvoGitError):
        taken(tmp_path / "task", name)


@pytest.mark.parametrize("name", FORMATS)
def test_a_link_within_a_task_folder_is_followed(tmp_path: Path, name: str) -> None:
    write(tmp_path / "task", FORMATS[name])
    before = taken(tmp_path / "task", name)
    place = next(iter(FORMATS[name]))
    (tmp_path / "task" / place).rename(tmp_path / "task" / "elsewhere.bin")
    (tmp_path / "task" / place).symlink_to("elsewhere.bin")
    after = taken(tmp_path / "task", name)
    assert set(before.splitlines()) <= set(after.splitlines())


@pytest.mark.parametrize("target", [".env", ".git/config", "sub/../.env", "way", "ABSOLUTE"])
@pytest.mark.parametrize("name", FORMATS)
def test_a_link_to_what_only_the_user_has_in_a_clone_is_not_followed(tmp_path: Path, name: str, target: str) -> None:
    task = tmp_path / "task"
    write(task, {**FORMATS[name], ".env": CANARY, ".git/config": CANARY, "sub/x": ""})
    (task / "way").symlink_to(".env")
    for place in FORMATS[name]:
        (task / place).rename(tmp_path / "kept")
        up = "../" * place.count("/")
        (task / place).symlink_to(task / ".env" if target == "ABSOLUTE" else up + target)
        with suppress(EvoGitError):
            assert CANARY not in taken(task, name)
        (task / place).unlink()
        (tmp_path / "kept").rename(task / place)


@pytest.mark.parametrize("target", ["id_rsa", ".env", "sub/credentials.json", ".netrc/x", "up/.git/config"])
def test_no_link_leads_to_a_hidden_or_secret_file(tmp_path: Path, target: str) -> None:
    write(tmp_path / "root", {target: CANARY, "file": ""})
    (tmp_path / "root" / "link").symlink_to(target)
    assert not has_file(tmp_path / "root", "link")
    assert not has_file(tmp_path / "root", "link", whole=True)


def test_a_link_to_an_untracked_file_of_a_working_tree_gives_no_goal(tmp_path: Path) -> None:
    write(tmp_path / "task", {**FORMATS["own"], "notes.txt": CANARY})
    (tmp_path / "task" / "goal.md").unlink()
    (tmp_path / "task" / "goal.md").symlink_to("notes.txt")
    assert CANARY in taken(tmp_path / "task", "own")
    (tmp_path / "task" / ".git").mkdir()
    with pytest.raises(ConfigError):
        find_task(str(tmp_path / "task"))


@pytest.mark.parametrize(("name", "place"), [("harbor", "tests"), ("own", "seed")])
def test_a_link_in_place_of_a_folder_takes_no_git_folder_along(tmp_path: Path, name: str, place: str) -> None:
    write(tmp_path / "task", FORMATS[name])
    shutil.move(tmp_path / "task" / place, tmp_path / "task" / ".git")
    (tmp_path / "task" / ".git" / "config").write_text(CANARY)
    (tmp_path / "task" / place).symlink_to(".git")
    with suppress(EvoGitError):
        assert CANARY not in taken(tmp_path / "task", name)


def test_a_brief_takes_no_template_through_a_link(tmp_path: Path) -> None:
    write(tmp_path / "task", FORMATS["own"])
    (tmp_path / "secret").write_text(CANARY)
    task = find_task(str(tmp_path / "task"))
    (task.templates / "proposal.md").unlink()
    (task.templates / "proposal.md").symlink_to(tmp_path / "secret")
    with pytest.raises(ConfigError):
        _template("proposal.md", SimpleNamespace(templates=task.templates))


def test_nothing_is_taken_from_the_folder_around_a_task(tmp_path: Path) -> None:
    task = {**FORMATS["openevolve"], "evaluator.py": f"import sys\nsys.path.append('..')\nimport notes\n{EVALUATOR}"}
    del task["config.yaml"]
    write(tmp_path, {f"task/{path}": text for path, text in task.items()})
    write(tmp_path, {"notes.py": f"# {CANARY}\n", "config.yaml": f"prompt:\n  system_message: the {CANARY}\n"})
    assert CANARY not in taken(tmp_path / "task", "openevolve")
    found = recognise(tmp_path / "task")
    assert found
    assert any("notes.py of the folder above" in note for note in found.notes)


@pytest.mark.parametrize(
    "target", ["../secret", "/etc/passwd", "in/../../secret", "loop", "folder", "", "ABSOLUTE", "/proc/self/environ"]
)
def test_only_regular_files_below_a_root_are_opened(tmp_path: Path, target: str) -> None:
    (tmp_path / "root" / "folder").mkdir(parents=True)
    (tmp_path / "root" / "in").symlink_to("folder")
    (tmp_path / "secret").write_text(CANARY)
    (tmp_path / "root" / "loop").symlink_to("loop")
    (tmp_path / "root" / "file").symlink_to(target.replace("ABSOLUTE", str(tmp_path / "secret")) or ".")
    assert not has_file(tmp_path / "root", "file")
    with pytest.raises(ConfigError):
        file_at(tmp_path / "root", "file")
    with pytest.raises(ConfigError):
        file_at(tmp_path / "root", "folder/../../secret")


def test_links_that_stay_below_a_root_are_followed_and_long_files_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "root", {"folder/file": "content"})
    (tmp_path / "root" / "relative").symlink_to("folder/../folder/file")
    (tmp_path / "root" / "absolute").symlink_to(tmp_path / "root" / "folder")
    assert file_at(tmp_path / "root", "relative")[0] == b"content"
    assert file_at(tmp_path / "root", "absolute/file", 7)[0] == b"content"
    with pytest.raises(ConfigError, match="at most 6 bytes"):
        file_at(tmp_path / "root", "folder/file", 6)


COLUMNS = "(id TEXT, code TEXT, combined_score REAL, generation, correct)"
DATABASES = {
    "view": "CREATE VIEW programs AS WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) "
    "SELECT n AS id, 'x' AS code, 1.0 AS combined_score, 1 AS rowid FROM r",
    "blob": "CREATE VIEW programs AS SELECT 'a' AS id, zeroblob(900000000) AS code, 1 AS combined_score, 1 AS rowid",
    "computed": "CREATE TABLE programs (id TEXT, combined_score REAL, code AS (hex(zeroblob(400000000))));"
    "INSERT INTO programs VALUES ('a', 1.0)",
    "virtual": "CREATE VIRTUAL TABLE programs USING fts5 (id, code, combined_score);"
    "INSERT INTO programs VALUES ('a', 'x', '1')",
}


@pytest.mark.parametrize("name", DATABASES)
def test_a_database_gives_only_the_rows_of_a_plain_table(tmp_path: Path, name: str) -> None:
    with closing(sqlite3.connect(tmp_path / "a.sqlite")) as database:
        database.executescript(DATABASES[name])
    for path in (tmp_path, tmp_path / "a.sqlite"):
        with pytest.raises(NotFoundError):
            read_past(path, "x.py", "score")


def test_a_table_of_millions_of_rows_is_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "a.sqlite")) as database:
        numbers = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 200002)"
        rows = f"{numbers} SELECT n, 'x', 1, 0, 1 FROM r"
        database.executescript(f"CREATE TABLE programs {COLUMNS}; INSERT INTO programs {rows}")
    with pytest.raises(NotFoundError, match="more than"):
        read_past(tmp_path, "x.py", "score")


def test_a_run_of_another_system_is_read_through_no_link_and_from_nowhere_else(tmp_path: Path) -> None:
    secret = f'{{"id": "1", "code": "{CANARY}", "error": "{CANARY}", "metrics": {{"combined_score": 1}}}}'
    write(tmp_path, {"away/programs/s.json": secret, "away/results/correct.json": secret, "run/gen_x/y": ""})
    with closing(sqlite3.connect(tmp_path / "run" / "a.sqlite")) as database:
        database.executescript(f"CREATE TABLE programs {COLUMNS}")
        database.execute("INSERT INTO programs VALUES ('a', 'x', 1.0, 'x/../../away', 0)")
        database.commit()
    assert CANARY not in repr(read_past(tmp_path / "run", "x.py", "score"))
    write(tmp_path / "link", {"programs/b.json": "{}"})
    (tmp_path / "link" / "programs" / "a.json").symlink_to(tmp_path / "away" / "programs" / "s.json")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "programs").symlink_to(tmp_path / "away" / "programs")
    (tmp_path / "database").mkdir()
    (tmp_path / "database" / "a.sqlite").symlink_to(tmp_path / "run" / "a.sqlite")
    for place in ("link", "folder", "database"):
        with pytest.raises(NotFoundError) as error:
            read_past(tmp_path / place, "x.py", "score")
        assert CANARY not in str(error.value)
