"""What a candidate saw in a holdout does not reach agents through the words of programs that are evaluated later."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from evogit.agents import Brief
from evogit.agents.briefs.briefing import write
from evogit.breeding.background import Backgrounds
from evogit.config import Task
from evogit.core import Evaluation, Evidence, Judged
from evogit.evaluation.evidence import muted
from evogit.history.context import StoredRun
from evogit.repository import Repository
from evogit.run import Run, Settings
from evogit.testing import Answer, Asked, InMemoryBackend, ScriptedAgent, Thought, add_note

MakeTask = Callable[..., Task]
HIDDEN = "the-hidden-input"
CONTEXT = 30_000


def spoken(asked: Asked, word: str = HIDDEN) -> Answer:
    """The seed is valid; whatever else is evaluated on train fails, with all it says."""
    if asked.split == "holdout" or b"#" not in b"".join(asked.changed.values()):
        return 1.0
    story = Evaluation(status="crashed", reason=f"raised KeyError: '{word}'", key=f"{asked.tree} {asked.split}")
    said = Evidence(stdout=word.encode(), stderr=f"Traceback: {word}".encode(), log=word, feedback={"case": "off by 3"})
    return story, said


async def go_on(path: Path, task: Task, proposals: int, word: str = HIDDEN) -> list[str]:
    """Whole briefs about failed candidates that came of so many proposals of one stretch of a run, and its own."""
    repository = Repository.open(path) if path.exists() else Repository.create(path)
    briefs: list[str] = []

    def think(brief: Brief, rng: random.Random) -> Thought:
        assert brief.background
        briefs.append(write(brief, brief.background(), CONTEXT).text)
        return add_note(brief, rng)

    settings = Settings(evaluations=None, proposals=proposals, selector="sequential")
    backend = InMemoryBackend(task, partial(spoken, word=word))
    run = Run(repository, task, "r", settings, agents=[ScriptedAgent(think)], backend=backend)
    known = len(run.history.phylogeny)
    await run.evolve()
    backgrounds = Backgrounds(repository, task, run.history)
    for candidate in list(run.history.phylogeny)[known:]:
        if candidate.operator != "seed":
            background = backgrounds.of(candidate)
            brief = Brief(goal=task.goal, parent=candidate, files={})
            briefs.append(write(brief, background, CONTEXT).text)
    return briefs


async def test_once_the_holdout_was_shown_agents_are_told_no_words_of_programs(task: Task, tmp_path: Path) -> None:
    path = tmp_path / "r"
    early = await go_on(path, task, 3, "early")
    assert any("raised KeyError: 'early'" in brief and "Traceback: early" in brief for brief in early), (
        "nobody had seen the holdout: all was told"
    )
    assert Repository.open(path).holdouts.shown(task.name)
    late = (await go_on(path, task, 6))[-1]
    assert HIDDEN not in late
    assert "raised KeyError" in late
    assert "off by 3" in late, "the evaluator's own words"
    run = StoredRun.open(Repository.open(path), "r")
    kept = run.repository.trees.files(list(run.history.evidence.values())[-1], lambda path: True)
    assert kept["unshown-stderr"] == f"Traceback: {HIDDEN}".encode(), "people can read it"


async def test_drafts_and_commands_are_muted_too(task: Task, path: Path) -> None:
    await go_on(path, task, 2)
    repository = Repository.open(path)
    assert repository.holdouts.shown(task.name)
    heard: list[Any] = []

    async def think(brief: Brief, rng: random.Random) -> Thought:
        workshop, proposal = brief.workshop, add_note(brief, rng)
        assert workshop
        heard.append(workshop.runs)
        if workshop.evaluations:
            heard.append(await workshop.evaluate(proposal))  # type: ignore[arg-type]
        return proposal

    agent = ScriptedAgent(think)
    agent.trials = 1
    settings = Settings(evaluations=None, proposals=5, selector="sequential")
    backend = InMemoryBackend(task, spoken)
    await Run(repository, task, "r", settings, agents=[agent], backend=backend).evolve()
    evaluations = [each for each in heard if isinstance(each, tuple)]
    assert False in heard
    assert evaluations
    for evaluation, evidence in evaluations:
        assert evaluation.reason == "raised KeyError"
        assert evidence.unshown


async def test_names_of_a_commands_numbers_are_muted(task: Task, path: Path) -> None:
    """A candidate's program chooses them, so that they would be words of its own."""

    def named(asked: Asked) -> Answer:
        numbers = {"score": 1.0, HIDDEN: 2.0}
        key = f"{asked.tree} {asked.split}"
        return Evaluation(
            status="ok", metrics=numbers, cases={"command": numbers}, key=key, judged="inside"
        ), Evidence()

    repository = Repository.create(path)
    backend = InMemoryBackend(task, named, judged="inside")

    def run_of(proposals: int) -> Run:
        settings = Settings(evaluations=None, proposals=proposals, selector="sequential")
        return Run(repository, task, "r", settings, agents=[ScriptedAgent()], backend=backend)

    await run_of(2).evolve()
    assert repository.holdouts.shown(task.name)
    run = run_of(4)
    known = {each.commit for each in run.history.phylogeny}
    await run.evolve()
    new = [each.commit for each in run.history.phylogeny if each.commit not in known]
    told = [(found.metrics, found.cases) for each in new if (found := run.history.evaluation(each))]
    assert told
    assert told == [({"score": 1.0}, {"command": {"score": 1.0}})] * len(told)


def test_only_numbers_names_of_pythons_and_words_of_the_evaluator_are_left() -> None:
    def reason(status: Any, said: str, judged: Judged = "outside") -> str:
        told, _ = muted(Evaluation(status=status, reason=said, judged=judged), Evidence(), {"score"})
        return told.reason

    assert reason("crashed", "raised KeyError: 'x'") == "raised KeyError"
    assert reason("crashed", "raised Secret41: 'x'") == "raised an exception of its own"
    assert reason("crashed", "raised print: x") == "raised an exception of its own"
    assert reason("timeout", "killed after 3 s of CPU in call 2") == "killed after 3 s of CPU in call 2"
    assert reason("invalid", "the sum is too small") == "the sum is too small"
    assert reason("invalid", "returned what JSON cannot say in call 1: x") == "returned what JSON cannot say in call 1"
    assert reason("invalid", "the value returned in call 1 does not fit: x") == (
        "the value returned in call 1 does not fit"
    )
    assert reason("invalid", f"the command exited with {HIDDEN}", "inside") == "the command failed"
    numbers = {"score": 2.0, HIDDEN: 1.0}
    evaluation = Evaluation(status="ok", metrics=numbers, cases={"command": numbers}, judged="inside")
    told, kept = muted(evaluation, Evidence(feedback={"command": HIDDEN}), {"score"})
    assert (told.metrics, told.cases, kept.feedback) == ({"score": 2.0}, {"command": {"score": 2.0}}, {})
    assert HIDDEN in kept.log
