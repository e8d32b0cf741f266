"""Outputs of two trees compared on generated inputs, in the sandbox."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from evogit.config import Task, load_repository_task
from evogit.core import ConfigError, RefusedError
from evogit.repository import Repository
from evogit.review.same_output import OutputComparison, check_repeats, compare_outputs, ddmin, inputs_of
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


# --- delta debugging ----------------------------------------------------------------------------------------------


def reduced(count: int, passes: Callable[[set[int]], bool]) -> tuple[list[tuple[int, ...]], int]:
    """The selections on the way, and how many were tried."""
    tried = 0

    async def first_passing(selections: Sequence[Sequence[int]]) -> int | None:
        nonlocal tried
        for index, selection in enumerate(selections):
            tried += 1
            if passes(set(selection)):
                return index
        return None

    async def collect() -> list[tuple[int, ...]]:
        return [kept async for kept in ddmin(range(count), first_passing)]

    return asyncio.run(collect()), tried


@pytest.mark.parametrize("needed", [{0, 4, 9}, {7}, {1, 2}, set(), set(range(10))])
def test_ddmin_leaves_what_is_needed_and_nothing_else(needed: set[int]) -> None:
    found, tried = reduced(10, lambda chosen: chosen >= needed)
    assert set(found[-1] if found else range(10)) == needed
    assert tried <= 130


def test_ddmin_finds_parts_that_help_only_together() -> None:
    together = reduced(8, lambda chosen: {2, 6} <= chosen or {1, 3, 5} <= chosen)[0][-1]
    assert together in [(2, 6), (1, 3, 5)]
    one_needs_the_other = reduced(8, lambda chosen: 3 in chosen and (2 in chosen or 6 not in chosen))[0][-1]
    assert one_needs_the_other == (3,)
    harmful_without = reduced(9, lambda chosen: {1, 5} <= chosen and (7 not in chosen or 8 in chosen))[0][-1]
    assert harmful_without == (1, 5)


def test_ddmin_is_one_minimal_whatever_passes() -> None:
    for seed in range(40):
        rng = random.Random(seed)
        good = {frozenset(rng.sample(range(7), rng.randrange(1, 7))) for _ in range(30)} | {frozenset(range(7))}
        kept = ([tuple(range(7))] + reduced(7, lambda chosen, good=good: frozenset(chosen) in good)[0])[-1]
        assert all(frozenset(kept) - {one} not in good for one in kept)
