"""A task in stages: each from the best of the one before, with its own words; and pauses in which a person looks."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

from evogit.agents import Brief
from evogit.config import Task
from evogit.core import ConfigError, Evaluation, UsageError
from evogit.events import Decision, Entry, Halted, ReviewAsked, Reviewed, StageBegun, Stopped
from evogit.history.context import StoredRun
from evogit.repository import Repository
from evogit.run import Run, Settings
from evogit.testing import Answer, Asked, InMemoryBackend, ScriptedAgent
from tests.clock import PATIENCE
from tests.conftest import TOML, MakeTask

STAGES = """
[[stages]]
goal = "Write the store."
until = "score >= 1 in store-*"
budget = {evaluations = 50}
[[stages]]
goal = "Write the pages."
budget = {evaluations = 4}
[[stages]]
goal = "Make it small."
until = "score >= 9"
"""


@pytest.fixture
def staged(tiny: MakeTask) -> Task:
    return tiny("staged", toml=TOML + STAGES)


def steps(asked: Asked) -> Answer:
    """A point for each line that was added; the store is there with the third."""
    lines = float(asked.changed.get("program.py", b"").count(b"\n"))
    cases = {"store-get": {"score": min(lines, 1.0)}, "store-put": {"score": float(lines >= 3)}, "page": {"score": 0.0}}
    return Evaluation(status="ok", metrics={"score": lines}, cases=cases)


class Builder:
    """Adds a line, and remembers what it was told."""

    def __init__(self) -> None:
        self.goals = list[str]()

    async def think(self, brief: Brief, rng: random.Random) -> dict[str, bytes]:
        self.goals.append(brief.goal)
        added = brief.files["program.py"] if b"#" in brief.files["program.py"] else b""
        await asyncio.sleep(0)
        return {"program.py": added + b"# %d\n" % rng.getrandbits(60)}


async def work(path: Path, task: Task, *builders: Builder, **options: Any) -> Stopped:
    repository = Repository.open(path) if path.exists() else Repository.create(path)
    settings = Settings(**{"selector": "one-plus-lambda", "evaluations": 100, **options})
    agents = [ScriptedAgent(builder.think) for builder in builders]
    run = Run(repository, task, "r", settings, agents=agents, backend=InMemoryBackend(task, steps))
    return await asyncio.wait_for(run.evolve(), PATIENCE)


def stored(path: Path) -> StoredRun:
    return StoredRun.open(Repository.open(path), "r")


async def test_each_stage_has_its_goal_and_begins_from_the_best_of_the_one_before(staged: Task, path: Path) -> None:
    builder = Builder()
    stopped = await work(path, staged, builder, deterministic=True)
    assert stopped.reason == "stages"
    history = stored(path).history
    assert [each.number for each in history.stages] == [1, 2, 3]
    assert [history.fitness(each.best) for each in history.stages] == [0, 3, 7]
    assert history.fitness(history.best or "") == 9
    told = [
        "".join(filter(goal.__contains__, ["Write the store.", "Write the pages.", "Make it small."]))
        for goal in builder.goals
    ]
    assert told == ["Write the store."] * 3 + ["Write the pages."] * 4 + ["Make it small."] * 2
    assert all("Bring value(x) to 20." in goal for goal in builder.goals), "what all of it is for"
    assert (await work(path, staged, Builder())).reason == "stages", "there is nothing left"


async def test_stages_go_on_where_the_run_was_cut_off_and_repeat(staged: Task, path: Path, tmp_path: Path) -> None:
    for limit in (3, 6, 100):
        await work(path, staged, Builder(), Builder(), deterministic=True, evaluations=limit)
    await work(tmp_path / "whole", staged, Builder(), Builder(), deterministic=True)
    await work(tmp_path / "again", staged, Builder(), Builder(), deterministic=True)
    cut, whole, again = (stored(each).history for each in (path, tmp_path / "whole", tmp_path / "again"))
    assert [each.number for each in cut.stages] == [each.number for each in whole.stages] == [1, 2, 3]
    assert [each.best for each in whole.stages] == [each.best for each in again.stages]
    assert [each.evaluations for each in whole.stages] == [each.evaluations for each in again.stages]
    assert list(whole.phylogeny.ids) == list(again.phylogeny.ids)


@pytest.mark.parametrize(("every", "reviews"), [(3, 3), (0, 2)])
async def test_a_review_pauses_until_a_person_decides(staged: Task, path: Path, every: int, reviews: int) -> None:
    running = asyncio.create_task(work(path, staged, Builder(), review_every=every))
    for number in range(reviews):
        while not (path.exists() and (run := stored(path)).history.paused):
            await asyncio.sleep(0.05)
        before = run.history.counts.evaluated
        await asyncio.sleep(0.5)
        run.journal.refresh()
        assert (run.history.paused, run.history.counts.evaluated) == (True, before), "nothing goes on meanwhile"
        run.journal.append(Decision(kind="guide", by="Ada", reason=f"look {number}"))
        while len(run.history.halts) == number:  # the next pause may have begun before anybody looks
            await asyncio.sleep(0.05)
            run.journal.refresh()
    assert (await running).reason == "stages"
    assert not stored(path).history.paused


async def paused(path: Path, *running: asyncio.Future[Any]) -> StoredRun:
    """The run once it waits for a person."""
    while not (path.exists() and (run := stored(path)).history.paused):
        assert not any(each.done() for each in running)
        await asyncio.sleep(0.05)
    return run


async def test_a_pause_holds_all_engines_until_a_person_and_not_the_reviewer_decides(staged: Task, path: Path) -> None:
    first = asyncio.create_task(work(path, staged, Builder(), review_every=3))
    run = await paused(path, first)
    second = asyncio.create_task(work(path, staged, Builder(), review_every=3, join=True))
    while len(run.history.engines) < 2:
        await asyncio.sleep(0.05)
        run.journal.refresh()
    refused = next(iter(run.history.phylogeny.ids))
    run.journal.append(Reviewed(engine="e", candidate=refused, model="m", verdict="refused", reason="not earned"))
    before = run.history.counts.evaluated
    await asyncio.sleep(1.0)
    run.journal.refresh()
    assert (run.history.paused, run.history.counts.evaluated) == (True, before)
    running = [first, second]
    while not all(each.done() for each in running):
        if (now := stored(path)).history.paused:
            now.journal.append(Decision(kind="guide", by="Ada", reason="go on"))
        await asyncio.sleep(0.1)
    assert [each.result().reason for each in running] == ["stages", "stages"]


async def test_a_pause_ends_when_the_engine_that_asked_for_it_is_gone(staged: Task, path: Path) -> None:
    running = asyncio.create_task(work(path, staged, Builder(), review_every=1_000))
    while not (path.exists() and (run := stored(path)).history.counts.evaluated):
        await asyncio.sleep(0.01)
    run.journal.append(ReviewAsked(engine="gone-123456"))
    await asyncio.sleep(1.0)
    run.journal.append(Decision(kind="guide", by="Ada", reason="go on"))
    assert (await asyncio.wait_for(running, PATIENCE)).reason == "stages"
    assert not stored(path).history.paused


class Times:
    """The entries of a run as it goes on, with the time at which each came."""

    def __init__(self) -> None:
        self.entries = list[tuple[Any, float]]()

    def entry(self, entry: Entry) -> None:
        self.entries.append((entry.event, asyncio.get_running_loop().time()))

    def activity(self, agent: str, doing: str) -> None:
        pass


async def test_the_time_of_a_pause_is_not_counted_as_minutes_of_a_stage(tiny: MakeTask, path: Path) -> None:
    timed = STAGES.replace("{evaluations = 4}", "{minutes = 0.01}")
    times, task = Times(), tiny("timed", toml=TOML + timed)
    settings = Settings(selector="one-plus-lambda", evaluations=10_000, review_every=0, review_minutes=0.03)
    agents, backend = [ScriptedAgent(Builder().think)], InMemoryBackend(task, steps)
    run = Run(Repository.create(path), task, "r", settings, agents=agents, backend=backend, observer=times)
    assert (await asyncio.wait_for(run.evolve(), PATIENCE)).reason == "stages"
    [(second, begun), (third, ended)] = [(e, at) for e, at in times.entries if isinstance(e, StageBegun)][1:]
    halted = [at for event, at in times.entries if isinstance(event, Halted)][0]
    assert begun < halted < ended
    assert ended - halted >= 0.6 / 2, "the stage had its time after the pause"
    assert third.evaluations > second.evaluations


async def test_a_review_of_stages_needs_stages(task: Task, path: Path) -> None:
    with pytest.raises(UsageError, match="stages"):
        await work(path, task, Builder(), review_every=0)


async def test_a_review_goes_on_alone_after_its_time_and_ends_with_the_run(staged: Task, path: Path) -> None:
    assert (await work(path, staged, Builder(), review_every=0, review_minutes=0.01)).reason == "stages"
    halts = [each for each in stored(path).history.halts if each.what == "review"]
    assert len(halts) == 2
    run = Run(
        Repository.create(path.with_name("stopped")),
        staged,
        "r",
        Settings(selector="one-plus-lambda", review_every=2),
        agents=[ScriptedAgent(Builder().think)],
        backend=InMemoryBackend(staged, steps),
    )
    running = asyncio.create_task(run.evolve())
    while not run.history.paused:
        await asyncio.sleep(0.05)
    run.stop()
    assert (await asyncio.wait_for(running, PATIENCE)).reason == "interrupted"


@pytest.mark.parametrize(
    ("stage", "words"),
    [
        ('goal = "x"', "what ends a stage"),
        ('goal = "x"\nuntil = "score"', "METRIC OP NUMBER"),
        ('goal = "x"\nuntil = "scor >= 1"', "names no metric"),
        ('goal = "x"\nbudget = {evaluations = 0}', "greater than 0"),
        ('goal = "x"\nbudget = {tokens = 5}', "tokens"),
        ('until = "score >= 1"', "goal"),
    ],
)
def test_stages_that_cannot_be_are_refused(tiny: MakeTask, stage: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        tiny("odd", toml=f"{TOML}\n[[stages]]\n{stage}\n")


async def test_minutes_do_not_repeat(tiny: MakeTask, path: Path) -> None:
    task = tiny("timed", toml=TOML + '[[stages]]\ngoal = "x"\nbudget = {minutes = 5}\n')
    with pytest.raises(UsageError, match="minutes"):
        await work(path, task, Builder(), deterministic=True)
