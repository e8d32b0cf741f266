"""Foreign task folders and runs that would cost memory, disk or a traceback: each within bounds."""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import subprocess
import tomllib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from evogit.adopt import find_task
from evogit.adopt.dockerfile import MAX_LAID_BYTES, read_dockerfile
from evogit.adopt.finding import recognise
from evogit.adopt.foreign_task import kept_folder, remove_kept
from evogit.adopt.past_runs import read_past
from evogit.adopt.sources import read_yaml
from evogit.contained import toml_of
from evogit.core import ConfigError, NotFoundError
from tests.adopt.evaluating import write

EVALUATOR = "def evaluate(program_path):\n    return {'combined_score': 1.0}\n"
OPENEVOLVE = {"evaluator.py": EVALUATOR, "initial_program.py": "x = 1\n"}
OWN = 'name="x"\ngoal="g"\neditable=["a"]\n[metrics.s]\ndirection="maximize"\n[evaluator]\nkind="command"\n'
TASK = f'{OWN}command="echo 1"\nread.s="exit"\n'
TOO_DEEP = 1200


def deepen(folder: Path) -> None:
    """Make folders within each other, more than a path may name."""
    folder.mkdir(parents=True, exist_ok=True)
    here = os.open(folder, os.O_RDONLY)
    for _ in range(TOO_DEEP):
        os.mkdir("d", dir_fd=here)
        inner = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)


@pytest.fixture
def deep(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "deep"
    subprocess.run(["rm", "-rf", str(tmp_path / "deep")], check=True)  # pytest's own way has no end for it


def test_an_image_lays_no_more_than_there_is_room_for() -> None:
    context = {"big": (bytes(1 << 20), 0o100644)}
    copies = "".join(f"COPY big b{number}\n" for number in range(400))
    recipe = read_dockerfile({**context, "Dockerfile": (f"FROM ubuntu\n{copies}".encode(), 0o100644)})
    assert 0 < sum(len(data) for data, _ in recipe.files.values()) <= MAX_LAID_BYTES
    assert any("missing" in note for note in recipe.notes)


def test_variables_of_an_image_do_not_double_without_an_end() -> None:
    text = "FROM ubuntu\nENV A=aaaaaaaaaaaaaaaa\n" + "ENV A=$A$A$A$A\n" * 14
    recipe = read_dockerfile({"Dockerfile": (text.encode(), 0o100644)})
    assert 16 < len(recipe.environment["A"]) <= 1 << 16


@pytest.mark.parametrize("text", ["a = a + a", "a += a", "a = f'{a}{a}'"])
def test_texts_of_a_module_do_not_double_without_an_end(tmp_path: Path, text: str) -> None:
    doubled = f"{text}\n" * 24
    module = f"a = 'x y'\n{doubled}c = dict(task_sys_msg=a)\n"
    write(tmp_path / "t", {"initial.py": "x = 1\n", "evaluate.py": "import sys\n", "run_evo.py": module})
    found = recognise(tmp_path / "t")
    assert found is not None
    assert len(found.goal) <= 1 << 17


@pytest.mark.parametrize("value", ["1" * 5000, "0x" + "f" * 5000, "[{a = 0x" + "f" * 99 + "}]"])
def test_an_integer_with_too_many_digits_is_no_toml(tmp_path: Path, value: str) -> None:
    with pytest.raises(tomllib.TOMLDecodeError):
        toml_of(f"n = {value}\n")
    write(tmp_path / "t", {"task.toml": f"n = {value}\n{TASK}", "seed/a": "x"})
    with pytest.raises(ConfigError):
        find_task(str(tmp_path / "t"))


def test_yaml_gives_what_json_can_hold() -> None:
    text = f"a: [2020-01-01, !!binary aGk=, !!set {{b}}]\nb: 0x{'f' * 50_000}\n3: x\nc: {{d: 1}}\n"
    assert read_yaml(text) == {"a": ["2020-01-01", None, None], "b": None, "c": {"d": 1}}


@pytest.mark.parametrize("said", ["[2020-01-01]", f"[0x{'f' * 50_000}]", "[!!binary aGk=]"])
def test_an_odd_configuration_is_a_task_all_the_same(tmp_path: Path, said: str) -> None:
    config = f"evaluator: {{cascade_thresholds: {said}}}\ndatabase: {{feature_dimensions: {said}}}\n"
    write(tmp_path / "t", {**OPENEVOLVE, "config.yaml": config})
    assert find_task(str(tmp_path / "t")).name == "t"


def test_a_name_that_is_no_utf_8_is_left_out_or_refused(tmp_path: Path) -> None:
    write(tmp_path / "t", OPENEVOLVE)
    name = os.fsdecode(b"data\xff.txt")
    (tmp_path / "t" / name).write_text("x")
    assert not any(name in path for path in find_task(str(tmp_path / "t")).evaluator_files())
    (tmp_path / "t" / "initial_program.py").rename(tmp_path / "t" / os.fsdecode(b"initial_program.p\xff"))
    with pytest.raises(ConfigError):
        find_task(str(tmp_path / "t"))


@pytest.mark.parametrize("name", ["n" * 300, "d/" * 1500 + "x"])
def test_an_image_with_a_path_that_no_system_can_have_is_refused(tmp_path: Path, name: str) -> None:
    docker = f"FROM ubuntu\nWORKDIR /app\nRUN echo x > {name}\n"[:1900] + "\n"
    tests = {"instruction.md": "x", "tests/test.sh": "echo 1", "task.toml": ""}
    write(tmp_path / "t", {**tests, "environment/Dockerfile": docker})
    with pytest.raises(ConfigError):
        find_task(str(tmp_path / "t"))


@pytest.mark.parametrize("place", ["seed", ".evogit"])
def test_folders_too_deep_in_each_other_are_refused(deep: Path, place: str) -> None:
    write(deep, {"task.toml": TASK, "seed/a": "x"})
    deepen(deep / place)
    with pytest.raises(ConfigError):
        find_task(str(deep)).digest  # noqa: B018 - a property that reads all


@pytest.mark.parametrize("files", [OPENEVOLVE, {"initial.py": "", "evaluate.py": ""}, {"instruction.md": "x"}])
def test_deep_folders_beside_a_task_are_passed_over(deep: Path, files: dict[str, str]) -> None:
    write(deep, {**files, "tests/test.sh": "", "environment/Dockerfile": "FROM x\n"})
    deepen(deep / "tests" / "data")
    assert recognise(deep) is not None
    with pytest.raises(NotFoundError):
        read_past(deep, "x.py", "score")


def test_odd_runs_are_read(tmp_path: Path) -> None:
    program = {"id": "a", "code": "x", "metrics": {"combined_score": 1.0}}
    files = {"checkpoint_1/programs/a.json": json.dumps(program), "checkpoint_1/metadata.json": '{"feature_stats": 3}'}
    write(tmp_path / "run", files)
    assert [each.value for each in read_past(tmp_path / "run", "x.py", "score").programs] == [1.0]
    with closing(sqlite3.connect(tmp_path / "a.sqlite")) as database:
        database.execute("CREATE TABLE programs (id TEXT, code TEXT, combined_score REAL, text_feedback TEXT)")
        database.execute("INSERT INTO programs VALUES ('a', 'x', 1.0, CAST(x'fffe' AS TEXT))")
        database.commit()
    assert [each.id for each in read_past(tmp_path / "a.sqlite", "x.py", "score").programs] == ["a"]


def test_a_table_in_a_bare_repository_is_refused(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", "--bare", str(tmp_path / "bare")], check=True)
    write(tmp_path / "bare", {"results.tsv": f"commit\tscore\n{'a' * 40}\t1\n"})
    with pytest.raises(NotFoundError):
        read_past(tmp_path / "bare", "x.py", "score")


def test_tasks_of_others_are_kept_until_nobody_uses_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    write(tmp_path / "t", OPENEVOLVE)
    folder = find_task(str(tmp_path / "t")).folder
    assert folder.is_relative_to(kept_folder())
    assert list(remove_kept(3600.0)) == []
    assert sum(size for _, size in remove_kept(0.0)) > 0
    assert not folder.exists()


def test_what_comes_along_as_a_source_names_it_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    script = "import os\nfor p in os.listdir('clients'): pass\nx = open('exact.csv')\nprint('METRIC s=3')\n"
    own = {"exact.csv": "1"}
    write(tmp_path / "away", {"bench.py": script, "clients/acme.txt": "x", **own})
    with caplog.at_level(logging.WARNING):
        assert set(find_task(str(tmp_path / "away" / "bench.py")).seed_files()) == {"bench.py", *own}
    assert all(path in caplog.text for path in own)


@pytest.mark.parametrize("where", ["home", "home/.."])
def test_no_pattern_takes_files_of_the_home_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    script = "import os\nfor p in os.listdir('clients'): pass\nx = open('exact.csv')\nprint('METRIC s=3')\n"
    (tmp_path / "home").mkdir()
    write((tmp_path / where).resolve(), {"bench.py": script, "a.txt": "x", "clients/acme.txt": "x", "exact.csv": "1"})
    assert set(find_task(str(tmp_path / where / "bench.py")).seed_files()) == {"bench.py"}
