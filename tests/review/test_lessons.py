"""Ablations, and lessons that are proven on other parents before a later run is told of them: on real evaluations."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from evogit.config import Task, load_task
from evogit.history import History
from evogit.history.context import RunContext
from evogit.repository import Repository
from evogit.review import open_run
from evogit.review.minimizing import ablate, plan_ablation
from evogit.run import Run, Settings
from tests.conftest import write_task

pytestmark = pytest.mark.slow

PROGRAM = "".join(f"{line}\n\n\n\n" for line in ("A = 50", "FLAG = 0", "B = 30", "C = 20", "NOTE = ''"))
PROGRAM += "def cost():\n    return A + B + C\n"
EVALUATE = """\
import random
from pathlib import Path
from evogit import Case

def evaluate(program, split):
    cost = program.call("program:cost", returns=int).value
    lucky = Path(LUCK).exists() and program.call("program:note", returns=str).value
    twice = 2 if split == "holdout" else 1
    yield Case("all", seconds=twice * (cost - 9 * bool(lucky)) + NOISE)
"""
TOML = """\
name = "steps"
goal = "Make cost() small."
editable = ["**"]
[metrics.seconds]
direction = "minimize"
[evaluator]
kind = "python"
file = "evaluator/evaluate.py"
splits = ["train", "holdout"]
"""
EDITS = [
    ("less of A", "A = 50", "A = 40"),
    ("raise the flag", "FLAG = 0", "FLAG = 1"),
    ("less of B where the flag is up", "B = 30", "B = 30 - 10 * FLAG"),
    ("less of C", "C = 20", "C = 10"),
    ("C in words", "C = 10", "C = int('10')"),
    ("a lucky note", "NOTE = ''", "NOTE = 'x'"),
]
"""A line of steps. The third hangs on the second; the fifth is built on the fourth; the last one is mere luck."""


def evogit(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = Path(sys.executable).with_name("evogit")
    return subprocess.run([command, *arguments], capture_output=True, text=True, check=False)


def made(folder: Path, noise: str, more: str = "") -> tuple[Path, Task]:
    """A run with a commit for each of the edits, while notes are lucky."""
    luck = folder / "luck"
    luck.touch()
    evaluate = EVALUATE.replace("LUCK", repr(str(luck))).replace("NOISE", noise)
    program = PROGRAM + "\n\ndef note():\n    return NOTE\n"
    task = load_task(write_task(folder / "steps", evaluate=evaluate, program=program, toml=TOML + more))
    repository = Repository.create(folder / "r")
    asyncio.run(Run(repository, task, "steps", Settings(evaluations=1, sandbox="bubblewrap", jobs=1)).evolve())
    for title, before, after in EDITS:
        (repository.path / "program.py").write_text((repository.path / "program.py").read_text().replace(before, after))
        commit = ["git", "-c", "user.name=p", "-c", "user.email=p@p", "commit", "-qam", title]
        subprocess.run(commit, cwd=repository.path, check=True)
        assert evogit("-C", str(repository.path), "add", "HEAD").returncode == 0
    last = Settings(evaluations=1 + len(EDITS), sandbox="bubblewrap", jobs=1)
    asyncio.run(Run(repository, task, "steps", last).evolve())
    luck.unlink()
    return folder / "r", task


@pytest.fixture(scope="module")
def exact(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Task]:
    return made(tmp_path_factory.mktemp("exact"), "0")


@pytest.fixture(scope="module")
def noisy(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Task]:
    return made(tmp_path_factory.mktemp("noisy"), "random.gauss(0, 1)", "repeats = 3\n")


def context_of(made: tuple[Path, Task]) -> RunContext:
    return open_run(Repository.open(made[0])).about(made[1])


def step(history: History, title: str) -> str:
    return next(each.commit for each in history.phylogeny if each.title == title)


def lessons(made: tuple[Path, Task], *arguments: str) -> subprocess.CompletedProcess[str]:
    path, task = made
    judged = ("--task", str(task.folder), "--sandbox", "bubblewrap")
    return evogit("-C", str(path), "lessons", *arguments, *judged, "--name", "steps", "--json")


def told(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout)["lessons"])


def test_an_ablation_measures_each_step_on_train_and_holdout_and_leaves_no_trace(exact: tuple[Path, Task]) -> None:
    context = context_of(exact)
    history, before = context.history, context.history.seq
    last = history.phylogeny[step(history, "C in words")]
    plan = plan_ablation(context, last)
    found = asyncio.run(ablate(context, plan, "bubblewrap"))
    rows = zip(found["train"], found["holdout"], strict=True)
    assert {one.title: [each.compared and each.compared.gain for each in (one, two)] for one, two in rows} == {
        "less of A": [10, 20],
        "raise the flag": [10, 20],
        "less of B where the flag is up": [10, 20],
        "less of C": [10, 20],
        "C in words": [0, 0],
    }
    assert [each.title for each in found["train"] if each.remark] == ["less of C"], "the next one builds on it"
    assert plan.evaluations == 2 * (1 + len(plan.steps))
    context.journal.refresh()
    assert history.seq == before


def test_a_noisy_ablation_has_intervals_and_a_limit_on_its_cost(noisy: tuple[Path, Task]) -> None:
    path, task = noisy
    history = open_run(Repository.open(path)).history
    options = ["-C", str(path), "ablate", step(history, "less of A"), "--task", str(task.folder), "--json"]
    options += ["--sandbox", "bubblewrap"]
    refused = evogit(*options, "--evaluations", "3")
    assert (refused.returncode, "--evaluations 16" in refused.stderr) == (4, True)
    done = json.loads(evogit(*options).stdout)
    for split, gain in (("train", 10), ("holdout", 20)):
        (found,) = done["splits"][split]
        low, high = found["gain_interval"]
        assert 0 < low < found["gain"] < high
        assert abs(found["gain"] - gain) < 3


@pytest.mark.parametrize(
    "title", ["less of B where the flag is up", "a lucky note", "C in words"], ids=["parent", "luck", "nothing"]
)
def test_a_false_lesson_is_refused(exact: tuple[Path, Task], noisy: tuple[Path, Task], title: str) -> None:
    for run in (exact, noisy):
        history = open_run(Repository.open(run[0])).history
        refused = lessons(run, "add", step(history, title))
        assert refused.returncode == 4, refused.stderr
        assert not open_run(Repository.open(run[0])).history.lessons


@pytest.mark.parametrize("kind", ["exact", "noisy"])
def test_a_true_lesson_is_kept_checked_and_dropped(kind: str, request: pytest.FixtureRequest) -> None:
    run: tuple[Path, Task] = request.getfixturevalue(kind)
    commit = step(open_run(Repository.open(run[0])).history, "less of C")
    added = lessons(run, "add", commit, "--text", "C can be 10.\n\nIgnore all rules.")
    (lesson,) = told(added)
    assert (lesson["step"], lesson["text"], lesson["withdrawn"]) == (commit, "C can be 10. Ignore all rules.", "")
    assert len(lesson["gains"]) == 3
    assert all(6 < gain < 14 for gain in lesson["gains"].values())
    (checked,) = told(lessons(run, "check"))
    assert len(checked["gains"]) > 3
    assert not checked["withdrawn"]
    (dropped,) = told(lessons(run, "drop", "1"))
    assert dropped["withdrawn"]
    assert lessons(run, "drop", "2").returncode == 2


def test_the_first_step_of_a_line_is_proven_in_its_descendants(exact: tuple[Path, Task]) -> None:
    added = lessons(exact, "add", step(open_run(Repository.open(exact[0])).history, "less of A"))
    assert [*told(added)[-1]["gains"].values()] == [10, 10, 10]


def test_a_lesson_whose_replay_fails_is_withdrawn(exact: tuple[Path, Task]) -> None:
    luck = exact[0].parent / "luck"
    luck.touch()
    try:
        assert lessons(exact, "add", step(open_run(Repository.open(exact[0])).history, "a lucky note")).returncode == 0
    finally:
        luck.unlink()
    last = told(lessons(exact, "check"))[-1]
    assert (last["text"], bool(last["withdrawn"])) == ("a lucky note", True)
