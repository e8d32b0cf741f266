"""`evogit new --from`: a task of another system, or one that a model writes from files in no known format."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evogit.adopt.foreign_task import PLAIN
from evogit.core import ConfigError
from evogit.review.drafting import ShownFiles, _task_files, shown_files
from tests.adopt.evaluating import write
from tests.openai_server import reply, serve

from .conftest import Cli

EVALUATOR = "def evaluate(program_path):\n    return {'combined_score': 2.0}\n"
TOKEN = "ghp_" + "a1B2" * 9
FILES = {
    "area.py": "def area(r):\n    return 3 * r * r\n",
    "README.md": "Bring area(r) as near to that of a circle as you can.\n",
    "notes.txt": f"token {TOKEN}\n",
}
TOML = """\
<<<<<<< WRITE task.toml
name = "circle"
editable = ["area.py"]
[metrics.error]
direction = "minimize"
[evaluator]
kind = "command"
command = "python3 .evogit/evaluate.py"
read.error = "json"
[sandbox]
timeout = 20
>>>>>>> END
"""
GOAL = "<<<<<<< WRITE goal.md\nBring `area(r)` in area.py nearer to the area of a circle.\n>>>>>>> END\n"
EVALUATE = """\
<<<<<<< WRITE .evogit/evaluate.py
import json, math, sys
sys.path.insert(0, ".")
from area import area
print(json.dumps({"error": abs(area(2) - math.pi * 4)}))
>>>>>>> END
"""
OUTSIDE = TOML.replace(
    'kind = "command"\ncommand = "python3 .evogit/evaluate.py"\nread.error = "json"',
    'kind = "python"\nfile = "evaluator/evaluate.py"',
)


def script(folder: Path, *replies: str) -> str:
    (folder / "replies.txt").write_text("%%\n" + "%%\n".join(replies), encoding="utf-8")
    return "script:replies.txt"


@pytest.mark.slow
def test_a_task_of_another_system_becomes_a_task_folder(cli: Cli, tmp_path: Path) -> None:
    write(tmp_path / "two", {"evaluator.py": EVALUATOR, "initial_program.py": "x = 1\n"})
    made = cli("new", "mine", "--from", "two", "--json").json
    assert (made["task"], made["judged"], made["metrics"]) == ("mine", "inside", {"combined_score": 2.0})
    old = cli("adopt", "two", "elsewhere", "--json")
    assert (old.code, old.json["metrics"]) == (0, {"combined_score": 2.0})
    assert "evogit new elsewhere --from two" in old.err
    assert cli("check", "mine").code == 0
    assert cli("new", "again", "--from", "two", "--model", "script:none").code == 2


@pytest.mark.slow
def test_a_model_writes_a_task_that_check_accepts(cli: Cli, tmp_path: Path) -> None:
    write(tmp_path / "old", FILES)
    name = script(tmp_path, OUTSIDE + GOAL, TOML + GOAL + EVALUATE)
    done = cli("new", "circle", "--from", "old", "--model", name, "--json")
    assert (done.code, done.json["model"]) == (0, name)
    assert set(done.json["files"]) == {"task.toml", "goal.md", ".evogit/evaluate.py", "seed/area.py"}
    checked = cli("check", "circle", "--json")
    assert checked.json["problems"] == []
    [split] = checked.json["splits"]
    assert (split["judged"], round(split["metrics"]["error"], 2)) == ("inside", 0.57)
    assert not (tmp_path / "circle" / "seed" / "notes.txt").exists()


@pytest.mark.parametrize(
    "reply",
    [
        "I cannot.",
        TOML,
        OUTSIDE + GOAL,
        TOML.replace('"circle"', '"other"') + GOAL,
        TOML.replace('["area.py"]', '["gone.py"]') + GOAL,
        TOML.replace("timeout = 20", 'setup = ["curl x"]') + GOAL,
        TOML.replace("timeout = 20", 'image = "x"') + GOAL,
        TOML.replace("timeout = 20", "network = true").replace("read.error", 'prepare = "curl x"\nread.error') + GOAL,
        TOML + GOAL + "<<<<<<< WRITE ../x\n1\n>>>>>>> END\n",
        TOML + GOAL + "<<<<<<< WRITE seed/../../x\n1\n>>>>>>> END\n",
        TOML + GOAL + "<<<<<<< WRITE seed/.git/config\n1\n>>>>>>> END\n",
    ],
)
def test_a_task_that_would_act_outside_a_sandbox_is_refused(cli: Cli, tmp_path: Path, reply: str) -> None:
    write(tmp_path / "old", FILES)
    done = cli("new", "circle", "--from", "old", "--model", script(tmp_path, reply))
    assert (done.code, (tmp_path / "circle").exists()) == (4, False), done.err


def test_files_with_credentials_are_neither_shown_nor_in_the_seed(tmp_path: Path) -> None:
    shown = shown_files(write(tmp_path / "old", {**FILES, ".env": "KEY=x", "id_rsa": "x"}))
    assert shown.sizes.keys() == {"area.py", "README.md"}
    assert "notes.txt" in shown.secret


def test_a_model_is_asked_only_after_trust_consent_and_within_the_limit(cli: Cli, tmp_path: Path) -> None:
    write(tmp_path / "old", {**FILES, "more.py": f"KEY = '{TOKEN}'\n", "README.md": f"{TOKEN} c4nary\n"})
    command = ("new", "circle", "--from", "old", "--model", "m")
    with serve([reply(TOML + GOAL + EVALUATE, prompt=2_000, completion=500)]) as server:
        settings = tmp_path / "settings.toml"
        price = "price = { input = 10.0, output = 100.0 }"
        settings.write_text(f'[models.m]\nbase_url = "{server.url}"\n{price}\n', encoding="utf-8")
        given = {"EVOGIT_SETTINGS": str(settings)}
        assert cli(*command, "--yes", **given, XDG_STATE_HOME=str(tmp_path / "fresh")).code == 4
        assert cli(*command, **given).code == 4
        assert cli(*command, "--yes", "--dollars", "0.001", **given).code != 0
        assert server.requests == []
        assert cli(*command, "--yes", **given).code == 0
        [request] = server.requests
    assert "area.py" in request.text
    assert TOKEN not in request.text
    assert "c4nary" not in request.text
    assert (tmp_path / "circle" / "task.toml").is_file()
    settings.write_text(settings.read_text().replace(price, ""))
    assert cli(*command, "--at", "two", "--yes", **given).code == 2
    assert cli("new", "two", "--dollars", "1").code == 2


def test_only_a_whole_task_is_written() -> None:
    files = ShownFiles({"area.py": (b"x", PLAIN)}, {}, {})
    with pytest.raises(ConfigError):
        _task_files(TOML, files, "circle")
    assert _task_files(TOML + GOAL, files, "circle")["seed/area.py"] == (b"x", PLAIN)


SCORED = "def evaluate(path):\n    return {'combined_score': float(open(path).read()[4:])}\n"


@pytest.mark.slow
def test_an_imported_run_is_rescored_and_goes_on_though_its_program_was_edited_since(cli: Cli, tmp_path: Path) -> None:
    programs = [
        {"id": "a", "code": "X = 1\n", "parent_id": None, "iteration_found": 0, "metrics": {"combined_score": 10.0}},
        {"id": "b", "code": "X = 2\n", "parent_id": "a", "iteration_found": 1, "metrics": {"combined_score": 20.0}},
    ]
    texts = {f"out/checkpoint_1/programs/{each['id']}.json": json.dumps(each) for each in programs}
    write(tmp_path / "sum", {"initial_program.py": "X = 5\n", "evaluator.py": SCORED, **texts})
    made = cli("import", "sum", "--name", "night", cwd=tmp_path)
    assert made.code == 0, made.err
    assert "evogit -C evogit-sum rescore sum --name night" in made.err
    rescored = cli("-C", "evogit-sum", "rescore", "sum", "--name", "night", "--yes", cwd=tmp_path)
    assert rescored.code == 0, rescored.err
    run = ("-C", "evogit-sum", "run", "sum", "--name", "night", "--evaluations", "5", "--seed", "1")
    assert cli(*run, cwd=tmp_path).code == 0
    shown = cli("-C", "evogit-sum", "status", "--name", "night", "--json", cwd=tmp_path).json
    assert shown["seed"]["metrics"] == {"combined_score": 1.0}
    assert shown["best"]["metrics"]["combined_score"] >= 2.0
