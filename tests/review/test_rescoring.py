"""A task that changes under a run: what is refused, what is evaluated again, and that scores never mix."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

from evogit.config import load_task
from evogit.config.run_settings import AgentSpec
from evogit.core import Metric, RefusedError
from evogit.engine.comparability import changes
from evogit.events import TaskChanged
from evogit.history import History
from evogit.history.context import RunContext, StoredRun
from evogit.repository import Repository
from evogit.review.rescoring import plan, rescore
from evogit.run import Run, Settings
from evogit.testing import RecordedHistory, RecordedRun
from tests.conftest import write_task

OLD = Metric(name="score", direction="maximize", primary=True)
NEW = Metric(name="errors", direction="minimize", primary=True)


class Story(RecordedHistory):
    """A history of one-letter candidates; `s` is the seed."""

    def __init__(self) -> None:
        super().__init__(task_digest="1", metrics=(OLD,), evaluator="old", agents=("a1", "a2"))
        self.born("s", value=1.0)

    def born(self, name: str, parents: str = "", value: float | None = None) -> None:
        self.propose(*parents, candidate=name, agent="a1")
        if value is not None:
            self.judged(name, value)

    def judged(self, name: str, value: float | None, metric: str = "score", evaluator: str = "old") -> None:
        if value is None:
            self.evaluate(name, "invalid", evaluator=evaluator)
        else:
            self.evaluate(name, value, metrics={metric: value}, evaluator=evaluator)

    def again(self, name: str, value: float | None) -> None:
        self.judged(name, value, "errors", "new")

    def changed(self) -> None:
        known: dict[str, Any] = {"by": "Ada", "task_digest": "2", "split": "train", "editable": ("*",)}
        self.append(TaskChanged(metrics=(NEW,), evaluator="new", **known))


@pytest.fixture
def story() -> Story:
    """The seed, a record `a`, its better child `b` (the individual of a1), and a dead end `c`."""
    story = Story()
    story.born("a", "s", 2.0)
    story.born("b", "a", 3.0)
    story.born("c", "a", 1.5)
    story.adopt("b", "a1")
    story.adopt("s", "a2")
    return story


def test_after_a_change_the_seed_the_living_and_the_records_wait_and_nobody_ranks(story: Story) -> None:
    story.changed()
    history = story.history
    assert list(history.pending) == ["s", "a", "b"]
    assert (history.best, history.records, history.metric) == (None, [], NEW)
    assert [history.fitness(each) for each in "sabc"] == [None] * 4
    assert history.living() == ["s"]
    former = history.former("c")
    assert former is not None
    assert former.metrics == {"score": 1.5}


def test_scores_of_now_rank_and_nothing_is_counted_twice(story: Story) -> None:
    story.changed()
    for name, value in (("b", 4.0), ("s", 9.0), ("a", 2.0)):
        story.again(name, value)
    history = story.history
    assert (history.best, history.records, history.living()) == ("a", ["s", "a"], ["b", "s"])
    assert (history.counts.evaluated, history.counts.failed, list(history.pending)) == (4, 0, [])
    assert not history.fitter("c", "s")
    story.born("d", "b")
    story.again("d", 1.0)
    assert (history.best, history.counts.evaluated) == ("d", 5)


def test_an_individual_that_became_invalid_gives_way_to_its_nearest_valid_ancestor(story: Story) -> None:
    story.changed()
    story.again("b", None)
    assert story.history.head("a1") == "s"
    story.again("s", 9.0)
    story.again("a", 5.0)
    assert story.history.head("a1") == "a"


def test_a_late_score_of_the_former_evaluator_ranks_nobody(story: Story) -> None:
    story.changed()
    story.again("s", 9.0)
    story.judged("b", 100.0)
    story.born("d", "s")
    story.judged("d", 100.0)
    assert (story.history.best, list(story.history.pending)) == ("s", ["a", "b", "d"])


def test_what_is_promoted_is_judged_again_and_what_is_pruned_is_not(story: Story) -> None:
    story.decide("promote", "c")
    story.decide("prune", "a")
    story.changed()
    assert list(story.history.pending) == ["s", "b", "c"]


def test_what_never_was_judged_still_counts_once(story: Story) -> None:
    story.born("d", "b")
    story.changed()
    assert "d" in story.history.pending
    story.again("d", None)
    assert (story.history.counts.evaluated, story.history.counts.failed) == (5, 1)


@pytest.mark.parametrize(
    ("file", "old", "new", "changed"),
    [
        ("task.toml", "to 20", "near 20", ["goal"]),
        ("task.toml", '"extra/**"', '"more/**"', ["editable"]),
        ("task.toml", "best_known = 0", "best_known = 1", ["metrics"]),
        ("task.toml", "score > -1e9", "score > -1e8", ["gates"]),
        ("task.toml", 'timeout = "60s"', "cpus = 2.0", ["limits", "environment"]),
        ("evaluator/evaluate.py", "yield Case", "yield  Case", ["evaluator/evaluate.py"]),
        ("evaluator/data/more.json", "", "{}", ["evaluator/data"]),
        ("seed/program.py", "A = 1.0", "A = 1.5", ["seed"]),
        ("README.md", "", "words", []),
    ],
)
def test_what_changed_is_named(tmp_path: Path, file: str, old: str, new: str, changed: list[str]) -> None:
    folder = write_task(tmp_path / "task")
    before, path = load_task(folder), folder / file
    parts, digest = before.parts, before.digest  # read now, as the files are
    path.parent.mkdir(exist_ok=True)
    path.write_text(path.read_text().replace(old, new) if old else new)
    after = load_task(folder)
    assert changes(parts, after.parts) == changed
    assert (after.digest != digest) == bool(changed)
    assert changes({}, after.parts) == []


# --- real runs ----------------------------------------------------------------------------------------------------


class World:
    """A tiny task's run in a real repository."""

    def __init__(self, folder: Path) -> None:
        self.task = load_task(folder / "task")
        self.path = folder / "repo"

    def run(self, **settings: Any) -> History:
        """Evolve until a limit is reached."""
        known = {"population": (AgentSpec("mutator", count=2),), "sandbox": "none", "jobs": 2, **settings}
        run = Run(Repository.open(self.path), self.task, "r", Settings(**known))
        asyncio.run(run.evolve())
        return run.history

    def change(self, file: str, old: str, new: str) -> None:
        """Edit a file of the task and read it again."""
        path = self.task.folder / file
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))
        self.task = load_task(self.task.folder)

    def open(self) -> RunContext:
        return StoredRun.open(Repository.open(self.path), "r").about(self.task)

    def rescore(self) -> History:
        context = self.open()
        asyncio.run(rescore(context, provider="none", jobs=2))
        return context.history


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with some candidates, and its task."""
    folder = tmp_path_factory.mktemp("ran")
    write_task(folder / "task")
    Repository.create(folder / "repo")
    World(folder).run(evaluations=6)
    return folder


@pytest.fixture
def world(ran: Path, tmp_path: Path) -> World:
    """A copy of it."""
    return World(Path(shutil.copytree(ran, tmp_path / "world")))


@pytest.mark.slow
def test_a_changed_evaluator_is_refused_by_name_and_rescoring_lets_the_run_go_on(world: World) -> None:
    world.change("evaluator/evaluate.py", "score=-abs(y - 20)", "score=-abs(y - 30)")
    with pytest.raises(RefusedError, match=r"evaluator changed .*\(evaluator/evaluate.py\).*evogit rescore.*--name"):
        world.run(evaluations=8)
    known = world.open()
    repository, before = known.repository, known.history
    todo = plan(known)
    assert todo is not None
    assert (todo.changed, todo.begun) == (("evaluator/evaluate.py",), False)
    history = world.rescore()
    assert plan(world.open()) is None
    assert {commit for commit in todo.candidates if history.judged(commit)} == set(todo.candidates)
    assert (history.counts, history.seed) == (before.counts, before.seed)
    seed = history.seed or ""
    assert (before.fitness(seed), history.fitness(seed)) == (-16.0, -26.0)
    assert history.judged(seed, "holdout")
    assert repository.target("refs/heads/evogit/r/best") == history.best
    assert world.run(evaluations=8).counts.evaluated == 8


@pytest.mark.slow
def test_a_seed_that_fails_under_the_change_changes_nothing(world: World) -> None:
    world.change("evaluator/evaluate.py", "y > 1e6", "y < 1e6")
    told = world.open().history.seq
    with pytest.raises(RefusedError, match="seed fails .*expected a value of a million"):
        world.rescore()
    assert world.open().history.seq == told


@pytest.mark.slow
def test_a_rescoring_that_was_cut_off_is_finished_by_the_next_run(world: World) -> None:
    world.change("task.toml", 'timeout = "60s"', 'timeout = "50s"')
    known = world.open()
    journal, history = known.journal, known.history
    journal.append(
        TaskChanged(
            by="Ada",
            task_digest=world.task.digest,
            metrics=world.task.metrics,
            split="train",
            evaluator=world.task.evaluator_digest,
            editable=world.task.editable,
        )
    )
    waiting = set(history.pending)
    left = plan(world.open())
    assert left is not None
    assert left.begun
    assert set(left.candidates) == waiting
    after = world.run(evaluations=6)
    assert (after.counts.evaluated, list(after.pending)) == (6, [])
    assert all(after.judged(commit) for commit in waiting)


@pytest.mark.slow
def test_candidates_that_changed_what_is_protected_now_are_invalid(world: World) -> None:
    world.change("task.toml", '["program.py", "extra/**"]', '["program.py"]')
    run = RecordedRun(world.path, "r")
    commit = run.add_files({"extra/new.py": b"x = 1\n"}, run.history.seed or "", value=0.0)
    evaluation = world.rescore().evaluation(commit)
    assert evaluation is not None
    assert evaluation.status == "invalid"


@pytest.mark.slow
def test_only_those_who_matter_are_judged_again_and_nobody_with_what_is_protected_now(world: World) -> None:
    world.change("task.toml", '["program.py", "extra/**"]', '["program.py"]')
    run = RecordedRun(world.path, "r")
    seed = run.history.seed or ""
    left = run.add_files({"extra/new.py": b"x = 1\n"}, seed, engine="dead")
    added = run.add_files({"program.py": b"x = 77\n"}, seed, engine="", agent="human", operator="human")
    after = world.rescore()
    evaluation = after.evaluation(left)
    assert evaluation is not None
    assert evaluation.status == "invalid", "it was proposed when it might change that, and is evaluated now"
    assert list(after.pending) == [added], "a run judges what people add, as far as its limits allow"
    assert world.run(evaluations=after.counts.evaluated + 1).judged(added)


@pytest.mark.slow
def test_a_changed_goal_goes_on_with_a_word_and_a_changed_seed_needs_a_new_run(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.change("task.toml", "Bring value(x) to 20.", "Bring value(x) close to 20.")
    known = world.open()
    assert plan(known) is None
    assert world.run(evaluations=6).counts.evaluated == 6
    assert "the goal changed" in caplog.text
    caplog.clear()
    world.run(evaluations=6)
    assert "the goal changed" not in caplog.text
    world.change("seed/program.py", "A = 1.0", "A = 1.5")
    with pytest.raises(RefusedError) as refusal:
        world.run(evaluations=6)
    assert "(goal, seed)" in str(refusal.value)
    assert "rescore" not in str(refusal.value)
    with pytest.raises(RefusedError, match="seed/ changed"):
        plan(world.open())


@pytest.mark.slow
def test_nobody_rescores_beside_an_engine(world: World) -> None:
    known = world.open()
    with (
        known.repository.engines("r").enter(join=False),
        pytest.raises(RefusedError, match="an engine works on the run r"),
    ):
        plan(known)
