"""What of a change earns its score: taking changes apart, delta debugging, and `evogit minimize` on a real run."""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from evogit.config import Task, load_task
from evogit.core import RefusedError
from evogit.history import History
from evogit.repository import EXECUTABLE, Repository, UnfitChangeError
from evogit.review import open_run, resolve
from evogit.review.minimizing import Minimized, Trial, ddmin, minimize
from evogit.run import Run, Settings
from tests.conftest import write_task

# --- taking apart -------------------------------------------------------------------------------------------------


def trees(tmp_path: Path) -> tuple[Repository, str, str]:
    repository = Repository.create(tmp_path / "r")
    write = repository.trees.write
    old = write(None, {"a.py": b"1\n2\n3\n4\n5", "b": b"x\0y", "c": b"c\n", "d": b"", "e/f": b"q\n"})
    changes = {"a.py": b"1\nX\nY\n4\n5\n6\n", "b": b"x\0z", "c": b"c\n", "d": b"now\n", "g": b"", "h": b"new\n\n"}
    return repository, old, write(old, {**changes, "e/f": None}, {"c": EXECUTABLE, "h": EXECUTABLE})


def test_every_kind_of_change_is_a_hunk_that_stands_alone(tmp_path: Path) -> None:
    repository, old, new = trees(tmp_path)
    change = repository.change(old, new)
    places = [(hunk.path, hunk.start, hunk.whole, hunk.mode) for hunk in change.hunks]
    assert places == [
        *[("a.py", 1, False, False), ("a.py", 2, False, False), ("a.py", 4, False, False)],
        *[("b", 0, True, False), ("c", 0, False, True), ("d", 0, False, False), ("e/f", 0, True, False)],
        *[("g", 0, True, False), ("h", 0, False, False)],
    ]
    for hunk in change.hunks:
        alone, without = change.tree([hunk]), change.tree([other for other in change.hunks if other != hunk])
        assert repository.changed_paths(old, alone) == repository.changed_paths(without, new) == [hunk.path]
    assert change.tree(()) == old
    modes = {entry.path: entry.mode for entry in repository.trees.entries(change.tree([change.hunks[-1]]))}
    assert modes["h"] == EXECUTABLE


def test_any_selection_of_random_changes_makes_a_tree(tmp_path: Path) -> None:
    repository, rng = Repository.create(tmp_path / "r"), random.Random(1)

    def text() -> bytes:
        lines = [rng.choice([b"a", b"b", b"c", b""]) for _ in range(rng.randrange(12))]
        return b"\n".join(lines) + rng.choice([b"", b"\n"])

    for _ in range(15):
        old = repository.trees.write(None, {"f": text(), "k": b"k"})
        change = repository.change(old, repository.trees.write(old, {"f": text()}))
        for hunk in change.hunks:
            assert repository.change(change.tree([hunk]), change.tree(change.hunks)) is not None


def test_a_file_that_gives_way_to_a_folder_cannot_be_taken_apart(tmp_path: Path) -> None:
    repository = Repository.create(tmp_path / "r")
    old, new = (repository.trees.write(None, {path: b"x\n"}) for path in ("a", "a/b"))
    with pytest.raises(UnfitChangeError):
        repository.change(old, new)


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


def test_ddmin_finds_hunks_that_help_only_together() -> None:
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


# --- on a run -----------------------------------------------------------------------------------------------------

SEED = "".join(f"V{i} = 0\nW{i} = 0\n" for i in range(10)) + "\n\ndef values():\n    return [V0, V4, V9]\n"
CHANGED = "".join(f"V{i} = {i + 1}\nW{i} = 0\n" for i in range(10)) + "\n\ndef values():\n    return [V0, V4, V9]\n"
EVALUATE = """\
from evogit import Case

def evaluate(program, split):
    yield Case("all", score=float(sum(program.call("program:values", returns=list).value)))
"""
TOML = """\
name = "hunks"
goal = "More."
editable = ["**"]
[metrics.score]
direction = "maximize"
[evaluator]
kind = "python"
file = "evaluator/evaluate.py"
"""


def evogit(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = Path(sys.executable).with_name("evogit")
    return subprocess.run([command, *arguments], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Task]:
    """A run whose candidate has 3 useful hunks among 10."""
    folder = tmp_path_factory.mktemp("minimize")
    task = load_task(write_task(folder / "hunks", evaluate=EVALUATE, program=SEED, toml=TOML))
    repository = Repository.create(folder / "r")
    settings = Settings(evaluations=1, sandbox="bubblewrap", jobs=1)
    asyncio.run(Run(repository, task, "hunks", settings).evolve())
    (repository.path / "program.py").write_text(CHANGED)
    subprocess.run(
        ["git", "-c", "user.name=p", "-c", "user.email=p@p", "commit", "-qam", "ten"], cwd=repository.path, check=True
    )
    assert evogit("-C", str(repository.path), "add", "HEAD").returncode == 0
    settings = Settings(evaluations=2, sandbox="bubblewrap", jobs=1)
    asyncio.run(Run(repository, task, "hunks", settings).evolve())
    return folder / "r", task


def minimized(path: Path, task: Task, evaluations: int = 100) -> tuple[Minimized, History, list[Trial]]:
    repository, trials = Repository.open(path), list[Trial]()
    run = open_run(repository)
    history = run.history
    limits: dict[str, Any] = {"provider": "bubblewrap", "jobs": 2, "evaluations": evaluations}
    candidate = resolve(history, history.human[0])
    return (
        asyncio.run(minimize(run.about(task), candidate, trials.append, **limits)),
        history,
        trials,
    )


@pytest.mark.slow
def test_the_three_useful_hunks_of_ten_are_left_with_their_gains(told: tuple[Path, Task]) -> None:
    path, task = told
    cut_off, history, _ = minimized(path, task, evaluations=5)
    assert not cut_off.complete
    assert cut_off.judged == 5
    assert not all(part.compared for part in cut_off.parts)
    before = history.counts.proposals
    done, history, trials = minimized(path, task)
    assert done.complete
    assert (done.kind, done.of, done.left) == ("hunk", 10, 3)
    gains = {part.title.partition("+ ")[2]: part.compared and part.compared.gain for part in done.parts}
    assert gains == {"V0 = 1": 1, "V4 = 5": 5, "V9 = 10": 10}
    smallest = history.phylogeny[done.smallest]
    assert history.fitness(done.smallest) == 16
    assert (smallest.agent, smallest.operator, smallest.strategy) == ("minimize", "mutation", "minimize")
    assert smallest.parents == (done.candidate,)
    assert history.counts.proposals == before == 0
    assert done.smallest not in history.judgements
    again, _, trials = minimized(path, task, evaluations=1)
    assert (again.smallest, again.judged, again.complete) == (done.smallest, 0, True)
    assert all(trial.known for trial in trials)
    fsck = subprocess.run(["git", "fsck", "--strict"], cwd=path, capture_output=True, text=True, check=True)
    assert "missing" not in fsck.stderr + fsck.stdout


# --- by steps ------------------------------------------------------------------------------------------------------

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


@pytest.fixture(scope="module")
def timed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Task]:
    """A run with a line of four steps, of which the first and the third save time, and the fourth needs the third."""
    folder = tmp_path_factory.mktemp("steps")
    program = PARTS + "def cost():\n    return COST_A + COST_B + COST_C\n"
    task = load_task(write_task(folder / "steps", evaluate=TIMED, program=program, toml=TIMED_TOML))
    repository = Repository.create(folder / "r")
    asyncio.run(Run(repository, task, "steps", Settings(evaluations=1, sandbox="bubblewrap", jobs=1)).evolve())
    edits = [
        ("less of A", "COST_A = 50", "COST_A = 40"),
        ("a remark", "COST_B = 30", "COST_B = 30 + 0"),
        ("less of C", "COST_C = 20", "COST_C = 10"),
        ("C in words", "COST_C = 10", "COST_C = int('10')"),
    ]
    for title, before, after in edits:
        (repository.path / "program.py").write_text((repository.path / "program.py").read_text().replace(before, after))
        commit = ["git", "-c", "user.name=p", "-c", "user.email=p@p", "commit", "-qam", title]
        subprocess.run(commit, cwd=repository.path, check=True)
        assert evogit("-C", str(repository.path), "add", "HEAD").returncode == 0
    asyncio.run(Run(repository, task, "steps", Settings(evaluations=5, sandbox="bubblewrap", jobs=1)).evolve())
    return folder / "r", task


@pytest.mark.slow
def test_steps_that_prove_nothing_are_dropped_and_the_others_have_gains_with_intervals(
    timed: tuple[Path, Task],
) -> None:
    path, task = timed
    history = open_run(Repository.open(path)).history
    last = next(each.commit for each in history.phylogeny if each.title == "C in words")
    options = ["-C", str(path), "minimize", last, "--task", str(task.folder), "--sandbox", "bubblewrap", "--json"]
    cut_off = json.loads(evogit(*options, "--evaluations", "2").stdout)
    assert (cut_off["complete"], cut_off["evaluations"]) == (False, 2)
    found = json.loads(evogit(*options).stdout)
    assert found["complete"]
    steps = {step["title"]: step for step in found["parts"]}
    dropped = [title for title, step in steps.items() if step["remark"] == "dropped"]
    assert dropped == ["a remark", "C in words"]
    for title in ("less of A", "less of C"):
        low, high = steps[title]["gain_interval"]
        assert 0 < low < steps[title]["gain"] < high
        assert 9 < steps[title]["gain"] < 11
        assert steps[title]["side_by_side"]
        assert steps[title]["size"] == {"files": 1, "added": 1, "removed": 1}
    history = open_run(Repository.open(path)).history
    small = history.phylogeny[found["smallest"]["commit"]]
    text = Repository.open(path).trees.files(small.tree, lambda _: True)["program.py"].decode()
    assert "COST_A = 40\n" in text
    assert "COST_B = 30\n" in text
    assert "COST_C = 10\n" in text
    again = json.loads(evogit(*options).stdout)
    assert (again["evaluations"], again["smallest"]["commit"]) == (0, small.commit)
    shown = evogit(*options[:-1])
    assert "less of A" in shown.stdout, shown.stderr


@pytest.mark.slow
def test_the_command_shows_the_change_for_review(told: tuple[Path, Task]) -> None:
    path, task = told
    options = ["-C", str(path), "minimize", "best", "--task", str(task.folder), "--sandbox", "bubblewrap"]
    shown = evogit(*options)
    assert shown.returncode == 0, shown.stderr
    assert "+10" in shown.stdout
    assert "+V9 = 10" in shown.stdout
    record = json.loads(evogit(*options, "--json").stdout)
    assert [part["gain"] for part in record["parts"]] == [1, 5, 10]
    assert [part["gain_interval"] for part in record["parts"]] == [[1, 1], [5, 5], [10, 10]]
    assert record["evaluations"] == 0
    trials = evogit("-C", str(path), "log", "--agent", "minimize", "--json").stdout.splitlines()
    assert len(trials) >= 10
    refused = evogit("-C", str(path), "minimize", "seed", "--task", str(task.folder))
    assert refused.returncode == 4
    assert "the files of the seed" in refused.stderr


@pytest.mark.slow
def test_a_task_that_changed_is_refused(told: tuple[Path, Task], tmp_path: Path) -> None:
    path, _ = told
    other = load_task(write_task(tmp_path / "hunks", evaluate=EVALUATE + "#", program=SEED, toml=TOML))
    with pytest.raises(RefusedError, match="task changed"):
        minimized(path, other)
