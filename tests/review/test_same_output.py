"""Outputs of two trees compared on generated inputs, in the sandbox."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from evogit.config import Task, load_repository_task
from evogit.core import ConfigError, RefusedError
from evogit.repository import Repository
from evogit.review.same_output import OutputComparison, check_repeats, compare_outputs, inputs_of
from tests.plain_git import git

TOML = """\
name = "lines"
goal = "Faster."
editable = ["app.py"]
[metrics.seconds]
direction = "minimize"
[evaluator]
kind = "command"
command = "echo 1"
read = { seconds = "regex:(.*)" }
same_output = "python3 app.py"
same_inputs = ["cases/*.txt"]
"""
PLAIN = """\
import sys

def render(text):
    return "".join(f"<p>{line.strip()}</p>" for line in text.split("\\n"))

text = sys.stdin.buffer.read().decode("utf-8", "surrogatepass")
sys.stdout.buffer.write(render(text).encode("utf-8"))
"""
FILES = {
    "evogit.toml": TOML,
    "app.py": PLAIN,
    "cases/one.txt": "one\ntwo  three\n\n  four\n" * 4,
    "cases/two.txt": "# a title\n\n- item é\n- item\n" * 4,
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "lines"
    for path, text in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "-c", "user.name=p", "-c", "user.email=p@p", "commit", "-qm", "start")
    return folder


def compared(folder: Path, program: str, count: int = 60, toml: str = TOML) -> OutputComparison:
    (folder / "evogit.toml").write_text(toml)
    task = load_repository_task(folder)
    repository = Repository.discover(folder)
    seed = repository.tree_of(repository.head())
    changed = repository.trees.write(seed, {"app.py": program.encode()})
    found = asyncio.run(compare_outputs(repository, task, seed, changed, "bubblewrap", count))
    assert found
    return found


def test_a_program_that_prints_the_same_in_another_way_has_no_difference(project: Path) -> None:
    found = compared(project, PLAIN.replace("line.strip()", "line.rstrip().lstrip()"))
    assert (found.differing, found.objection) == (0, "")
    assert found.inputs == 60
    assert found.files == 2


@pytest.mark.slow
def test_a_planted_difference_is_shrunk_to_the_characters_that_matter(project: Path) -> None:
    found = compared(project, PLAIN.replace("line.strip()", "line.replace('  t', ' t').strip()"))
    assert found.differing
    assert found.objection
    assert found.difference
    assert "  t" in found.difference.text
    assert len(found.difference.text) <= 6 < found.difference.size
    assert found.difference.before != found.difference.after
    assert compared(project, PLAIN.replace("line.strip()", "line.replace('  t', ' t').strip()")) == found


@pytest.mark.slow
def test_a_lone_surrogate_that_failed_and_is_printed_now_is_a_difference(project: Path) -> None:
    found = compared(project, PLAIN.replace('.encode("utf-8")', '.encode("utf-8", "replace")'), count=200)
    assert found.difference
    assert found.difference.text in (r"\xed\xa0\x80", r"\xed\xbf\xbf")
    assert "UnicodeEncodeError" in found.difference.before


@pytest.mark.slow
def test_a_program_that_hangs_on_some_inputs_differs_there(project: Path) -> None:
    hang = "while text == open('cases/two.txt').read(): pass\n    return"
    found = compared(project, PLAIN.replace("return", hang), 10)
    assert found.differing == 1
    assert found.difference
    assert found.difference.text == FILES["cases/two.txt"]
    assert found.difference.before != found.difference.after


@pytest.mark.slow
def test_the_seed_of_a_program_that_prints_the_time_or_always_fails_is_a_problem(project: Path) -> None:
    def checked(command: str) -> OutputComparison:
        (project / "evogit.toml").write_text(TOML.replace("python3 app.py", command))
        found = asyncio.run(check_repeats(load_repository_task(project), "bubblewrap"))
        assert found
        return found

    assert not checked("python3 app.py").problem
    assert checked("head -c 8 /dev/urandom").problem
    assert "no-such-file" in checked("cat no-such-file").problem


def test_inputs_begin_with_the_files_repeat_and_hold_odd_characters() -> None:
    files = {path: text.encode() for path, text in FILES.items() if path.startswith("cases/")}
    made = list(inputs_of(files, 300))
    assert made == list(inputs_of(files, 300))
    assert dict(made[:2]) == files
    assert len({text for _, text in made}) > 250
    for odd in (b"\xed\xa0\x80", b"\0", b"\r", "\u2028".encode(), b"\xff"):
        assert any(odd in text for _, text in made)
    assert list(inputs_of({"empty": b""}, 10))


def test_keys_that_need_each_other_and_globs_without_files_are_named(project: Path) -> None:
    def loaded(toml: str) -> Task:
        (project / "evogit.toml").write_text(toml)
        return load_repository_task(project)

    for lacking in ('same_output = "python3 app.py"\n', 'same_inputs = ["cases/*.txt"]\n'):
        with pytest.raises(ConfigError, match="same_inputs"):
            loaded(TOML.replace(lacking, ""))
    without = TOML.replace('same_output = "python3 app.py"\nsame_inputs = ["cases/*.txt"]\n', "")
    assert loaded(without).digest == loaded(TOML).digest
    assert asyncio.run(check_repeats(loaded(without), "bubblewrap")) is None
    with pytest.raises(RefusedError, match=r"nowhere/\*"):
        compared(project, PLAIN, toml=TOML.replace("cases/*", "nowhere/*"))
