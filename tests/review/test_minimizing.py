"""The steps of a result that earn its score: `evogit minimize` on real runs, exact and timed."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from evogit.config import Task, load_task
from evogit.core import Candidate, RefusedError
from evogit.history import History
from evogit.repository import Repository
from evogit.review import open_run, resolve
from evogit.review.minimizing import Minimized, Trial, minimize
from evogit.run import Run, Settings
from tests.conftest import write_task

pytestmark = pytest.mark.slow

PARTS = "".join(f"COST_{name} = {cost}\n\n\n\n" for name, cost in (("A", 50), ("B", 30), ("C", 20)))
TIMED = """\
import random
from evogit import Case

def evaluate(program, split):
    cost = program.call("program:cost", returns=int).value
    yield Case("all", seconds=cost * random.uniform(0.998, 1.002))
"""
TIMED_TOML = """\
name = "steps"
goal = "Faster."
editable = ["**"]
[metrics.seconds]
direction = "minimize"
measures = "time"
[evaluator]
kind = "python"
file = "evaluator/evaluate.py"
repeats = 2
"""


EXACT = TIMED.replace(" * random.uniform(0.998, 1.002)", "")
EXACT_TOML = TIMED_TOML.replace('measures = "time"\n', "").replace("repeats = 2\n", "")
EDITS = [
    ("less of A", "COST_A = 50", "COST_A = 40"),
    ("nothing", "COST_B = 30", "COST_B = 30 + 0"),
    ("less of C", "COST_C = 20", "COST_C = 10"),
    ("C in words", "COST_C = 10", "COST_C = int('10')"),
]
"""A line of steps: the first and the third save time; the last one takes the place of the third."""


def evogit(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = Path(sys.executable).with_name("evogit")
    return subprocess.run([command, *arguments], capture_output=True, text=True, check=False)


def made(folder: Path, evaluate: str, toml: str) -> tuple[Path, Task]:
    """A run with a commit for each of the edits."""
    program = PARTS + "def cost():\n    return COST_A + COST_B + COST_C\n"
    task = load_task(write_task(folder / "steps", evaluate=evaluate, program=program, toml=toml))
    repository = Repository.create(folder / "r")
    asyncio.run(Run(repository, task, "steps", Settings(evaluations=1, sandbox="bubblewrap", jobs=1)).evolve())
    for title, before, after in EDITS:
        (repository.path / "program.py").write_text((repository.path / "program.py").read_text().replace(before, after))
        commit = ["git", "-c", "user.name=p", "-c", "user.email=p@p", "commit", "-qam", title]
        subprocess.run(commit, cwd=repository.path, check=True)
        assert evogit("-C", str(repository.path), "add", "HEAD").returncode == 0
    asyncio.run(Run(repository, task, "steps", Settings(evaluations=5, sandbox="bubblewrap", jobs=1)).evolve())
    return folder / "r", task


@pytest.fixture(scope="module")
def exact(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Task]:
    return made(tmp_path_factory.mktemp("exact"), EXACT, EXACT_TOML)


@pytest.fixture(scope="module")
def timed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Task]:
    return made(tmp_path_factory.mktemp("timed"), TIMED, TIMED_TOML)


def titled(history: History, title: str) -> Candidate:
    return next(each for each in history.phylogeny if each.title == title)


def minimized(path: Path, task: Task, evaluations: int = 100) -> tuple[Minimized, History, list[Trial]]:
    trials = list[Trial]()
    run = open_run(Repository.open(path))
    candidate = titled(run.history, "C in words")
    limits: dict[str, Any] = {"provider": "bubblewrap", "evaluations": evaluations}
    return asyncio.run(minimize(run.about(task), candidate, trials.append, **limits)), run.history, trials


def test_exact_steps_without_a_gain_are_dropped_and_nothing_is_evaluated_twice(exact: tuple[Path, Task]) -> None:
    path, task = exact
    cut_off, history, _ = minimized(path, task, evaluations=1)
    assert (cut_off.complete, cut_off.judged) == (False, 1)
    before = history.counts.proposals
    done, history, _ = minimized(path, task)
    assert (done.complete, done.left) == (True, 2)
    told = [(step.title, step.remark, step.compared and step.compared.gain) for step in done.steps]
    assert told == [
        ("less of A", "", 10),
        ("nothing", "dropped", 0),
        ("less of C", "", 10),
        ("C in words", "dropped", 0),
    ]
    smallest = history.phylogeny[done.smallest]
    assert (smallest.agent, smallest.operator, smallest.strategy) == ("minimize", "mutation", "minimize")
    assert history.counts.proposals == before == 0
    assert done.smallest not in history.judgements
    again, _, trials = minimized(path, task, evaluations=1)
    assert (again.smallest, again.judged, again.complete) == (done.smallest, 0, True)
    assert all(trial.known for trial in trials)
    fsck = subprocess.run(["git", "fsck", "--strict"], cwd=path, capture_output=True, text=True, check=True)
    assert "missing" not in fsck.stderr + fsck.stdout


def test_timed_steps_have_gains_measured_side_by_side_with_intervals(timed: tuple[Path, Task]) -> None:
    path, task = timed
    last = titled(open_run(Repository.open(path)).history, "C in words").commit
    options = ["-C", str(path), "minimize", last, "--task", str(task.folder), "--sandbox", "bubblewrap", "--json"]
    cut_off = json.loads(evogit(*options, "--evaluations", "2").stdout)
    assert (cut_off["complete"], cut_off["evaluations"]) == (False, 2)
    found = json.loads(evogit(*options).stdout)
    assert found["complete"]
    steps = {step["title"]: step for step in found["steps"]}
    assert [title for title, step in steps.items() if step["remark"] == "dropped"] == ["nothing", "C in words"]
    for title in ("less of A", "less of C"):
        low, high = steps[title]["gain_interval"]
        assert 0 < low < steps[title]["gain"] < high
        assert 9 < steps[title]["gain"] < 11
        assert steps[title]["side_by_side"]
        assert steps[title]["size"] == {"files": 1, "added": 1, "removed": 1}
    repository = Repository.open(path)
    small = open_run(repository).history.phylogeny[found["smallest"]["commit"]]
    text = repository.trees.files(small.tree, lambda _: True)["program.py"].decode()
    for line in ("COST_A = 40\n", "COST_B = 30\n", "COST_C = 10\n"):
        assert line in text
    shown = evogit(*options[:-1])
    assert "less of A" in shown.stdout, shown.stderr


def test_what_is_not_better_than_the_seed_beyond_noise_cannot_be_minimized(timed: tuple[Path, Task]) -> None:
    path, task = timed
    history = open_run(Repository.open(path)).history
    repository = Repository.open(path)
    files = {"program.py": (PARTS + "def cost():\n    return COST_A + COST_B + COST_C + 0\n").encode()}
    subprocess.run(["git", "checkout", "-q", history.seed or ""], cwd=path, check=True)
    (path / "program.py").write_bytes(files["program.py"])
    subprocess.run(["git", "-c", "user.name=p", "-c", "user.email=p@p", "commit", "-qam", "same"], cwd=path, check=True)
    assert evogit("-C", str(path), "add", "HEAD").returncode == 0
    asyncio.run(Run(repository, task, "steps", Settings(evaluations=99, minutes=0.05, sandbox="bubblewrap")).evolve())
    run = open_run(Repository.open(path))
    with pytest.raises(RefusedError, match="not better than the seed"):
        asyncio.run(
            minimize(run.about(task), titled(run.history, "same"), print, provider="bubblewrap", evaluations=20)
        )


def test_the_seed_and_a_task_that_changed_are_refused(exact: tuple[Path, Task], tmp_path: Path) -> None:
    path, task = exact
    run = open_run(Repository.open(path))
    with pytest.raises(RefusedError, match="the files of the seed"):
        asyncio.run(
            minimize(run.about(task), resolve(run.history, "seed"), print, provider="bubblewrap", evaluations=1)
        )
    other = load_task(write_task(tmp_path / "steps", evaluate=EXACT + "#", toml=EXACT_TOML))
    with pytest.raises(RefusedError, match="task changed"):
        minimized(path, other)
