"""What people do beside a running engine takes effect at once: on what is evaluated, and on what is bred."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evogit.agents import Brief, NoUsableChangeError
from evogit.config import Task
from evogit.core import Evaluation, Evidence, Files, RepositoryError
from evogit.engine.engine import LOOK_EVERY
from evogit.engine.evaluations import Evaluations
from evogit.events import Decision, Entry, Proposed
from evogit.history.context import RunContext, StoredRun
from evogit.repository import Repository
from evogit.run import Run, Settings
from evogit.testing import Answer, Asked, InMemoryBackend, ScriptedAgent
from tests.clock import PATIENCE

MakeTask = Callable[..., Task]


def notes(before: Callable[[Brief], Any] | None = None) -> ScriptedAgent:
    """An agent that adds a note; `before` is awaited with the brief."""

    async def think(brief: Brief, rng: random.Random) -> dict[str, bytes]:
        note = b"# %d\n" % rng.getrandbits(60)
        if before is not None:
            await before(brief)
        return {"program.py": note}

    return ScriptedAgent(think)


class Gate(InMemoryBackend):
    """Is held up by the evaluations with these numbers until it is let go."""

    def __init__(self, task: Task, *held: int) -> None:
        super().__init__(task, self._number)
        self.held = held
        self.cut_off = list[str]()
        self.reached = asyncio.Event()
        self.go = asyncio.Event()

    @property
    def begun(self) -> list[str]:
        return [asked.tree for asked in self.asked]

    async def _number(self, asked: Asked) -> Answer:
        if asked.number in self.held:
            self.reached.set()
            try:
                await self.go.wait()
            except asyncio.CancelledError:
                self.cut_off.append(asked.tree)
                raise
        return float(asked.number)


class Tidy(Gate):
    """One that takes a while to clean up what is broken off, as a killed judge does on a busy machine."""

    tidied = 0

    async def evaluate(self, tree: str, files: Files, *, split: str, repeat: int = 0) -> tuple[Evaluation, Evidence]:
        try:
            return await super().evaluate(tree, files, split=split, repeat=repeat)
        except asyncio.CancelledError:
            await asyncio.sleep(3 * LOOK_EVERY)
            self.tidied += 1
            raise


class Person:
    """Somebody beside the engine, in a process of their own as far as Git is concerned."""

    def __init__(self, path: Path) -> None:
        self.run = StoredRun.open(Repository.open(path), "r")
        self.history = self.run.history
        self.journal = self.run.journal

    def context(self, task: Task) -> RunContext:
        """The run as an engine has it."""
        return self.run.about(task).of("e")

    def decide(self, kind: Any, *candidates: str, **more: Any) -> str:
        entry = self.journal.append(Decision(kind=kind, by="Ada", candidates=candidates, **more))
        assert entry
        return entry.id


def engine(path: Path, task: Task, *agents: ScriptedAgent, executor: Gate, **options: Any) -> Run:
    repository = Repository.open(path) if path.exists() else Repository.create(path)
    settings = Settings(**{"selector": "sequential", **options})  # every move asks its agent
    return Run(repository, task, "r", settings, agents=agents, backend=executor)


async def test_what_is_pruned_is_not_judged_any_more_and_counts_for_nothing(task: Task, path: Path) -> None:
    gate = Gate(task, 3)
    running = asyncio.create_task(engine(path, task, notes(), executor=gate, evaluations=5).evolve())
    await asyncio.wait_for(gate.reached.wait(), PATIENCE)
    person = Person(path)
    (waiting,) = person.history.pending
    person.decide("prune", waiting)
    assert (await asyncio.wait_for(running, PATIENCE)).reason == "evaluations"
    person.journal.refresh()
    history = person.history
    assert gate.cut_off == [history.phylogeny[waiting].tree]
    assert (history.counts.evaluated, len(history.phylogeny), history.pending) == (5, 6, {})
    assert history.evaluation(waiting) is None


@pytest.mark.slow
async def test_cleaning_up_after_what_was_pruned_is_not_broken_off(task: Task, path: Path) -> None:
    gate = Tidy(task, 3)
    running = asyncio.create_task(engine(path, task, notes(), executor=gate, evaluations=4).evolve())
    await asyncio.wait_for(gate.reached.wait(), PATIENCE)
    person = Person(path)
    person.decide("prune", *person.history.pending)
    await asyncio.wait_for(running, PATIENCE)
    assert gate.tidied == len(gate.cut_off) == 1


async def test_one_that_is_pruned_while_the_seed_is_packed_takes_nobody_else_along(task: Task, path: Path) -> None:
    await engine(path, task, notes(), executor=Gate(task), evaluations=3).evolve()
    person = Person(path)
    seed, one, other = (candidate.commit for candidate in person.history.phylogeny)
    judge = Evaluations(person.context(task), Gate(task))
    verdicts = asyncio.gather(judge.evaluate(one), judge.evaluate(other))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    person.decide("prune", one)
    judge.give_up_pruned()
    given_up, verdict = await asyncio.wait_for(verdicts, PATIENCE)
    assert given_up is None
    assert verdict
    assert await judge.evaluate(seed), "nor anybody who comes later"


@pytest.mark.slow
async def test_what_is_no_longer_pruned_is_judged_after_all(task: Task, path: Path) -> None:
    gate, passed = Gate(task, 2), asyncio.Event()
    person: Person

    async def before(brief: Brief) -> None:
        if gate.cut_off:
            passed.set()
            await gate.go.wait()

    running = asyncio.create_task(engine(path, task, notes(before), executor=gate, evaluations=4).evolve())
    await asyncio.wait_for(gate.reached.wait(), PATIENCE)
    person = Person(path)
    (waiting,) = person.history.pending
    decision = person.decide("prune", waiting)
    await asyncio.wait_for(passed.wait(), PATIENCE)
    person.decide("undo", undoes=decision)
    while not person.history.judged(waiting):
        await asyncio.sleep(0.05)
        person.journal.refresh()
    assert not running.done()
    gate.go.set()
    await asyncio.wait_for(running, PATIENCE)
    person.journal.refresh()
    assert (person.history.counts.evaluated, person.history.pending) == (4, {})


@pytest.mark.slow
async def test_what_is_brought_back_waits_where_its_place_in_the_budget_is_taken(task: Task, path: Path) -> None:
    gate = Gate(task, 2, 3)
    running = asyncio.create_task(engine(path, task, notes(), executor=gate, evaluations=2).evolve())
    await asyncio.wait_for(gate.reached.wait(), PATIENCE)
    person = Person(path)
    (first,) = person.history.pending
    decision = person.decide("prune", first)
    while len(gate.begun) < 3:
        await asyncio.sleep(0.02)
    person.decide("undo", undoes=decision)
    await asyncio.sleep(2 * LOOK_EVERY)
    gate.go.set()
    await asyncio.wait_for(running, PATIENCE)
    person.journal.refresh()
    assert (person.history.counts.evaluated, list(person.history.pending)) == (2, [first])
    await asyncio.wait_for(engine(path, task, notes(), executor=Gate(task), evaluations=3).evolve(), PATIENCE)
    person.journal.refresh()
    assert (person.history.counts.evaluated, person.history.judged(first)) == (3, True)


async def test_a_verdict_on_what_was_pruned_meanwhile_takes_nobody_s_place(task: Task, path: Path) -> None:
    await engine(path, task, notes(), executor=Gate(task), evaluations=1).evolve()
    person, repository = Person(path), Repository.open(path)
    tree = repository.trees.write(None, {"program.py": b"mine"})
    commit = repository.commit(tree, (), author="human", time=1, title="mine", trailers={})
    event = Proposed(engine="", move=0, candidate=commit, tree=tree, parents=(), agent="human", operator="human")
    person.journal.append(event)
    person.decide("prune", commit)
    judge = Evaluations(person.context(task), Gate(task))
    verdict = Evaluation(status="ok", metrics={"score": 1.0}), Evidence()
    await judge.settle(commit, verdict)
    assert (person.history.counts.evaluated, person.history.judged(commit)) == (1, False)
    person.decide("undo", undoes=person.history.decisions[-1].id)
    await Evaluations(person.context(task), Gate(task), 1).settle(commit, verdict)
    assert not person.history.judged(commit), "its place is gone, and there is no other"
    await judge.settle(commit, verdict)
    assert person.history.judged(commit)


async def test_trials_that_a_killed_minimize_left_wait_for_room_in_the_budget(task: Task, path: Path) -> None:
    await engine(path, task, notes(), executor=Gate(task), evaluations=1).evolve()
    person, repository = Person(path), Repository.open(path)
    tree = repository.trees.write(None, {"program.py": b"less"})
    commit = repository.commit(tree, (), author="minimize", time=1, title="less", trailers={})
    born: dict[str, Any] = {"candidate": commit, "tree": tree, "parents": (), "agent": "minimize"}
    person.journal.append(Proposed(engine="gone", move=0, operator="mutation", **born))
    for limit in (1, 2):
        await engine(path, task, notes(), executor=Gate(task), evaluations=limit).evolve()
        person.journal.refresh()
        assert (person.history.counts.evaluated, person.history.judged(commit)) == (limit, limit == 2)


async def test_what_was_bred_from_a_pruned_parent_is_dropped_when_it_comes(task: Task, path: Path) -> None:
    decided = list[str]()

    async def prune_the_parent(brief: Brief) -> None:
        person = Person(path)
        if not decided and (best := person.history.best) != person.history.seed:
            decided.append(best or "")
            person.decide("prune", best or "")

    await engine(path, task, notes(prune_the_parent), executor=Gate(task), proposals=8).evolve()
    history = Person(path).history
    assert [failure.reason for failure in history.failures] == [f"its parent {decided[0][:7]} was pruned meanwhile"]
    assert not history.phylogeny.children(decided[0])
    assert history.counts.proposals == 8


async def test_guidance_is_in_every_later_brief_until_it_is_taken_back(task: Task, path: Path) -> None:
    told, decisions = list[tuple[str, ...]](), list[str]()

    async def guide(brief: Brief) -> None:
        assert brief.background is not None
        told.append(brief.background().guidance)
        person = Person(path)
        if len(told) in (1, 2):
            decisions.append(person.decide("guide", reason=f"say {len(told)}"))
        if len(told) == 3:
            person.decide("undo", undoes=decisions[0])

    await engine(path, task, notes(guide), executor=Gate(task), proposals=4).evolve()
    assert told == [(), ("say 1",), ("say 1", "say 2"), ("say 2",)]


@pytest.mark.slow
async def test_a_long_evaluation_for_a_person_keeps_nobody_else_from_being_heard(task: Task, path: Path) -> None:
    gate, think = Gate(task, 2), asyncio.Event()

    async def before(brief: Brief) -> None:
        await think.wait()

    running = asyncio.create_task(engine(path, task, notes(before), executor=gate, evaluations=9).evolve())
    while not path.exists() or not (person := Person(path)).history.heads:
        await asyncio.sleep(0.02)
    repository = Repository.open(path)
    tree = repository.trees.write(None, {"program.py": b"mine"})
    commit = repository.commit(tree, (), author="human", time=1, title="mine", trailers={})
    event = Proposed(engine="", move=0, candidate=commit, tree=tree, parents=(), agent="human", operator="human")
    person.journal.append(event)
    await asyncio.wait_for(gate.reached.wait(), PATIENCE)
    person.decide("stop")
    await asyncio.sleep(0.4)
    assert not running.done(), "evaluations under way are finished first"
    gate.go.set()
    think.set()
    stopped = await asyncio.wait_for(running, PATIENCE)
    person.journal.refresh()
    assert (stopped.reason, stopped.detail) == ("asked", "by Ada")
    assert person.history.judged(commit)
    assert person.history.counts.evaluated == 3, "the seed, the one that was being thought of, and the person's"


async def test_a_fault_that_shows_while_all_think_ends_the_run_with_its_own_sentence(task: Task, path: Path) -> None:

    async def lose_the_journal(brief: Brief) -> None:
        repository = Repository.open(path)
        (path / ".git" / "refs" / "evogit" / "r" / "journal" / repository.host).unlink()
        await asyncio.sleep(60)

    with pytest.raises(RepositoryError, match="lost entries"):
        await asyncio.wait_for(engine(path, task, notes(lose_the_journal), executor=Gate(task)).evolve(), PATIENCE)


async def test_an_agent_that_fails_again_and_again_is_seen_to_pause_and_why(task: Task, path: Path) -> None:
    class Watching:
        def __init__(self) -> None:
            self.said = list[str]()

        def entry(self, entry: Entry) -> None:
            pass

        def activity(self, agent: str, doing: str) -> None:
            self.said.append(doing)

    async def fail(brief: Brief) -> None:
        raise NoUsableChangeError("no idea")

    watching = Watching()
    repository, settings = Repository.create(path), Settings(selector="sequential", proposals=2)
    run = Run(repository, task, "r", settings, watching, agents=[notes(fail)], backend=Gate(task))
    await run.evolve()
    pauses = [doing for doing in watching.said if doing.startswith("pausing")]
    assert pauses == [f"pausing, as it failed {times} in a row: no idea" for times in (1, 2)]
