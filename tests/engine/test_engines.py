"""Engines beside each other, people who decide meanwhile, and Git commands that a person runs in the middle."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from evogit.agents import Advice, Agent, Brief, NoUsableChangeError, Proposal
from evogit.config import Task
from evogit.config.run_settings import AgentSpec
from evogit.core import Evaluation, EvaluatorError, Evidence, Files, NotFoundError, RefusedError, SandboxError, Status
from evogit.engine.engine import LOOK_EVERY
from evogit.events import Decision, Entry, Evaluated, Proposed
from evogit.history import History
from evogit.history.context import StoredRun
from evogit.history.leaders import contender
from evogit.repository import Repository
from evogit.repository import git as packing
from evogit.review.reporting import remarks
from evogit.run import Run, Settings
from evogit.testing import Answer, Asked, InMemoryBackend
from tests.clock import PATIENCE
from tests.plain_git import git

MakeTask = Callable[..., Task]


class Notes(Agent):
    """An agent that adds a note drawn from its generator; `before` is awaited with the number of its proposal."""

    kind = "notes"

    def __init__(self, before: Callable[[int], Any] | None = None) -> None:
        self.drawn: list[int] = []
        self._before = before

    async def propose(self, brief: Brief, rng: random.Random) -> Proposal:
        self.drawn.append(rng.getrandbits(60))
        await asyncio.sleep(0.005)
        if self._before is not None:
            await self._before(len(self.drawn))
        return Proposal(changes={"program.py": b"# %d\n" % self.drawn[-1]}, title="a note")


class Scores(InMemoryBackend):
    """The score is drawn from the tree's id; `verdict` may say how an evaluation ends."""

    def __init__(self, task: Task, verdict: Callable[[int, str], Status] = lambda number, split: "ok") -> None:
        super().__init__(task, self._score, pause=0.002)
        self._verdict = verdict

    def _score(self, asked: Asked) -> Answer:
        status = self._verdict(asked.number, asked.split)
        metrics = {"score": float(int(asked.tree[:6], 16))} if status == "ok" else {}
        key = self.key(asked.tree, asked.split, asked.repeat)
        found = Evaluation(status=status, metrics=metrics, split=asked.split, repeat=asked.repeat, key=key)
        return found, Evidence(stdout=asked.tree.encode())


def engine(
    path: Path, task: Task, *agents: Notes, executor: InMemoryBackend | None = None, name: str = "r", **options: Any
) -> Run:
    repository = Repository.open(path) if path.exists() else Repository.create(path)
    settings = Settings(**{"selector": "sequential", **options})  # every move asks its agent
    return Run(repository, task, name, settings, agents=agents, backend=executor or Scores(task))


def history_of(path: Path) -> History:
    return StoredRun.open(Repository.open(path), "r").history


def evaluations_of(path: Path) -> list[tuple[str, str]]:
    """The candidate and the split of each evaluation in the journal."""
    entries: list[Entry] = []
    Repository.open(path).journal("r", entries.append)
    return [(e.event.candidate, e.event.evaluation.split) for e in entries if isinstance(e.event, Evaluated)]


class Brittle(Scores):
    """Says `status` of the candidates at these places of all, by their order, and only of repeats where `repeats`."""

    def __init__(self, task: Task, status: Status, places: slice = slice(None), *, repeats: bool = False) -> None:
        super().__init__(task)
        self.trees: list[str] = []
        self._status: Status = status
        self._places = places
        self._repeats = repeats

    def _score(self, asked: Asked) -> Answer:
        self.trees.extend([asked.tree] if asked.tree not in self.trees else [])
        fails = asked.tree in self.trees[self._places] and (asked.repeat > 0 or not self._repeats)
        self._verdict = lambda number, split: self._status if fails else "ok"
        return super()._score(asked)


async def test_engines_that_join_think_of_something_else_under_names_of_their_own(task: Task, path: Path) -> None:
    crews = [[Notes(), Notes()] for _ in range(3)]
    first = engine(path, task, *crews[0], evaluations=60)

    async def join(crew: list[Notes]) -> None:
        await asyncio.sleep(0.05)
        await engine(path, task, *crew, evaluations=60, join=True).evolve()

    await asyncio.gather(first.evolve(), *(join(crew) for crew in crews[1:]))
    first.journal.refresh()
    assert first.history.counts.evaluated == 60
    drawn = [number for crew in crews for agent in crew for number in agent.drawn]
    assert all(agent.drawn for crew in crews for agent in crew)
    assert len(set(drawn)) == len(drawn)
    names = [name for started in first.history.engines.values() for name in started.agents]
    assert len(set(names)) == len(names) == 6


async def test_what_a_dead_engine_left_is_taken_over_while_others_wait_for_it(task: Task, path: Path) -> None:
    await engine(path, task, Notes(), evaluations=3).evolve()
    repository = Repository.open(path)

    async def die(number: int) -> None:  # another engine proposes, and is never heard of again
        if number == 2:
            tree = repository.trees.write(None, {"program.py": b"left"})
            commit = repository.commit(tree, (), author="a9", time=1, title="left", trailers={})
            event = Proposed(
                engine="gone", move=99, candidate=commit, tree=tree, parents=(), agent="a9", operator="human"
            )
            repository.journal("r", lambda entry: None).append(event)

    scores = Scores(task)
    run = engine(path, task, Notes(die), Notes(), Notes(), executor=scores, evaluations=8)
    assert (await asyncio.wait_for(run.evolve(), PATIENCE)).reason == "evaluations"
    assert [asked.split for asked in scores.asked].count("train") == 5, (
        "three agents waited, and one of them took it over"
    )
    assert history_of(path).counts.evaluated == 8
    assert not history_of(path).pending


async def test_branches_follow_a_persons_decisions_even_while_nothing_new_comes(task: Task, path: Path) -> None:
    seen: list[tuple[str, ...]] = []

    async def decide(number: int) -> None:
        repository, history = Repository.open(path), history_of(path)
        journal = repository.journal("r", lambda entry: None)
        if number == 10:
            journal.append(Decision(kind="prune", by="Ada", candidates=(history.best or "",), subtree=True))
        if number == 12:
            journal.append(Decision(kind="undo", by="Ada", undoes=history.decisions[-1].id))
        if number >= 10:
            expected = (history.best or "", history.head("a1"))
            for _ in range(200 if number in (11, 13) else 1):
                shown = tuple(repository.target(f"refs/heads/evogit/r/{name}") or "" for name in ("best", "a1"))
                if shown == expected:
                    break
                await asyncio.sleep(LOOK_EVERY / 5)
            seen.append((*expected, *shown))
            raise NoUsableChangeError("only looking")

    await engine(path, task, Notes(decide), proposals=14).evolve()
    for index in (1, 3):  # the moves after the two decisions
        best, head, shown_best, shown_head = seen[index]
        assert (shown_best, shown_head) == (best, head)
    assert seen[0][:2] != seen[1][:2]
    assert seen[3][:2] == seen[0][:2]


async def test_the_branch_of_the_best_catches_up_when_nobody_works_on_it_any_more(task: Task, path: Path) -> None:
    await engine(path, task, Notes(), evaluations=4).evolve()
    git(path, "checkout", "-q", "evogit/r/best")
    held, head = git(path, "rev-parse", "HEAD"), history_of(path).best

    async def leave(number: int) -> None:
        if number == 30:
            assert history_of(path).best != head, "there was a better one meanwhile"
            assert git(path, "rev-parse", "evogit/r/best") == held
            assert git(path, "status", "--porcelain") == ""
            git(path, "checkout", "-q", "main")
        if number > 30:
            raise NoUsableChangeError("nothing more")

    await engine(path, task, Notes(leave), proposals=36).evolve()
    assert git(path, "rev-parse", "evogit/r/best").strip() == history_of(path).best


async def test_an_evaluator_that_failed_on_the_holdout_is_asked_again(task: Task, path: Path) -> None:
    broken = Scores(task, lambda number, split: "evaluator-error" if split == "holdout" else "ok")
    with pytest.raises(EvaluatorError):
        await engine(path, task, Notes(), evaluations=3, executor=broken).evolve()
    await engine(path, task, Notes(), evaluations=3).evolve()
    history = history_of(path)
    assert history.evaluation(history.best or "", "holdout") is not None
    assert history.judged(history.best or "", "holdout")


async def test_a_cached_verdict_whose_evidence_is_gone_is_a_verdict_still(task: Task, path: Path) -> None:
    await engine(path, task, Notes(), name="old", evaluations=4, deterministic=True).evolve()
    git(path, "update-ref", "-d", f"refs/evogit/old/keep/{Repository.open(path).host}")
    git(path, "gc", "-q", "--prune=now")
    await engine(path, task, Notes(), evaluations=4, deterministic=True).evolve()
    history = history_of(path)
    assert history.counts.cached == 4
    assert set(history.evidence.values()) == {""}


async def test_a_verdict_that_repeats_did_not_agree_on_is_no_verdict_for_another_run(
    task: Task, path: Path, tiny: MakeTask
) -> None:
    scores = Scores(tiny("again"))
    scores.digest = task.evaluator_digest
    flaky = Scores(task, lambda number, split: "flaky" if number == 2 else "ok")
    await engine(path, task, Notes(), name="old", evaluations=2, executor=flaky, deterministic=True).evolve()
    await engine(path, task, Notes(), evaluations=2, executor=scores, deterministic=True).evolve()
    assert history_of(path).counts.cached == 1
    assert [asked.split for asked in scores.asked].count("train") == 1 + 1, "the best once more at the end"


@pytest.mark.slow
async def test_people_tidy_their_repository_in_the_middle_of_a_run(task: Task, path: Path) -> None:
    run = engine(path, task, *(Notes() for _ in range(4)), evaluations=100)

    over = asyncio.Event()

    async def tidy() -> None:
        while not over.is_set():
            for command in (("pack-refs", "--all"), ("gc", "-q"), ("repack", "-a", "-d", "-q")):
                process = await asyncio.create_subprocess_exec(
                    "git", *command, cwd=path, stderr=asyncio.subprocess.PIPE
                )
                await process.communicate()

    tidying = asyncio.create_task(tidy())
    assert (await run.evolve()).reason == "evaluations"
    over.set()
    await tidying
    assert history_of(path).counts.evaluated == 100
    assert git(path, "fsck", "--strict", "--no-dangling") == ""


async def test_without_a_commit_there_is_no_seed_and_no_trace(path: Path, tmp_path: Path, tiny: MakeTask) -> None:
    task = replace(tiny(), seed=None)
    git(tmp_path, "init", "-q", str(path))
    with pytest.raises(NotFoundError, match="commit what is to be improved first"):
        await engine(path, task, Notes(), evaluations=3).evolve()
    assert Repository.open(path).runs() == []


async def test_a_run_on_a_persons_own_executor_goes_on(task: Task, path: Path) -> None:
    for budget in (3, 5):
        scores = Scores(task)
        scores.digest = "mine"
        await engine(path, task, Notes(), evaluations=budget, executor=scores).evolve()
    assert history_of(path).counts.evaluated == 5


async def test_an_agent_adopts_what_was_judged_just_before_its_engine_was_killed(task: Task, path: Path) -> None:
    await engine(path, task, Notes(), evaluations=1).evolve()
    repository, history = Repository.open(path), history_of(path)
    journal = repository.journal("r", lambda entry: None)
    tree = repository.trees.write(None, {"program.py": b"better"})
    child = repository.commit(tree, (history.seed or "",), author="a1", time=1, title="better", trailers={})
    parents, better = (history.seed or "",), Evaluation(status="ok", metrics={"score": 1e9})
    journal.append(
        Proposed(engine="gone", move=1, candidate=child, tree=tree, parents=parents, agent="a1", operator="mutation")
    )
    journal.append(Evaluated(candidate=child, evaluation=better))
    await engine(path, task, Notes(), evaluations=2).evolve()
    assert history_of(path).head("a1") == child
    assert git(path, "rev-parse", "evogit/r/a1").strip() == child


async def test_every_candidate_survives_garbage_collection_without_evidence_and_branches(
    task: Task, path: Path
) -> None:
    class Silent(Scores):
        async def evaluate(self, *arguments: Any, **options: Any) -> tuple[Evaluation, Evidence]:
            return (await super().evaluate(*arguments, **options))[0], Evidence()

    await engine(path, task, Notes(), evaluations=12, executor=Silent(task)).evolve()
    for ref in git(path, "for-each-ref", "--format=%(refname)", "refs/heads/evogit").split():
        git(path, "update-ref", "-d", ref)
    git(path, "reflog", "expire", "--expire=now", "--all")
    git(path, "gc", "-q", "--prune=now")
    for candidate in history_of(path).phylogeny:
        assert git(path, "cat-file", "-t", candidate.commit) == "commit\n"


@pytest.mark.slow
async def test_a_long_run_is_packed_on_the_way_and_at_its_end(
    task: Task, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "PACK_EVERY", 30)
    monkeypatch.setattr(packing, "PACK_AT_END", 10)
    packs = list[int]()

    async def wait_for_pack(number: int) -> None:
        for _ in range(200 if number == 33 else 0):
            packs.append(len(list(path.glob(".git/objects/pack/*.pack"))))
            if packs[-1]:
                break
            await asyncio.sleep(0.05)

    await engine(path, task, Notes(wait_for_pack), evaluations=50).evolve()
    assert packs[-1] == 1
    assert len(list(path.glob(".git/objects/pack/*.pack"))) == 2


async def test_noise_of_which_the_task_says_nothing_is_told_when_a_run_ends(task: Task, tmp_path: Path) -> None:
    drifting = InMemoryBackend(task, lambda asked: float(asked.number))
    await engine(tmp_path / "noisy", task, Notes(), evaluations=4, executor=drifting).evolve()
    history = history_of(tmp_path / "noisy")
    assert (history.counts.evaluated, history.repeats) == (4, 3)
    assert contender(history) is None, "what seems best is evaluated again, once that is known"
    [said] = [each for each in remarks(history) if "noisy" in each]
    assert "was 4, and 5 when evaluated once more" in said
    await engine(tmp_path / "exact", task, Notes(), evaluations=4).evolve()
    exact = history_of(tmp_path / "exact")
    assert (exact.repeats, exact.counts.repeated) == (0, 0)
    assert not [each for each in remarks(exact) if "noisy" in each]


async def test_errors_of_the_evaluator_stop_a_run_only_in_a_row(task: Task, path: Path) -> None:
    moody = Scores(task, lambda number, split: "evaluator-error" if number % 2 else "ok")
    await engine(path, task, Notes(), evaluations=6, executor=moody).evolve()
    assert history_of(path).counts.evaluated == 6
    assert [asked.split for asked in moody.asked].count("train") == 12 + 1, "the best once more at the end"


@pytest.mark.slow
@pytest.mark.parametrize("agents", [1, 2])
async def test_a_candidate_that_breaks_the_evaluator_is_set_aside_and_the_run_goes_on(
    task: Task, path: Path, agents: int
) -> None:
    brittle = Brittle(task, "evaluator-error", slice(2, 3))
    run = engine(path, task, *(Notes() for _ in range(agents)), executor=brittle, evaluations=8)
    assert (await run.evolve()).reason == "evaluations"
    history = history_of(path)
    assert [asked.tree for asked in brittle.asked].count(brittle.trees[2]) == 3
    assert (history.counts.evaluated, len(history.pending), len(history.set_aside)) == (8, 0, 1)
    assert any("set aside" in remark for remark in remarks(history))


async def test_what_the_machine_was_too_busy_for_counts_as_a_proposal_and_is_measured_by_the_next_engine(
    task: Task, path: Path
) -> None:
    busy = Brittle(task, "not-measured", slice(2, 4))
    assert (await engine(path, task, Notes(), executor=busy, proposals=6).evolve()).reason == "proposals"
    history = history_of(path)
    assert [asked.tree for asked in busy.asked].count(busy.trees[2]) == 1, "the backend has tried again itself"
    assert (history.counts.evaluated, history.counts.failed, history.counts.charged) == (5, 0, 6)
    assert (len(history.unmeasured), len(history.pending), len(history.set_aside)) == (2, 0, 0)
    assert any("not measured" in remark for remark in remarks(history))
    assert (await engine(path, task, Notes(), proposals=7).evolve()).reason == "proposals"
    history = history_of(path)
    assert (history.counts.evaluated, len(history.unmeasured), len(history.pending)) == (8, 0, 0)


async def test_a_run_does_not_begin_while_the_machine_is_too_busy_for_the_seed(task: Task, path: Path) -> None:
    with pytest.raises(EvaluatorError, match="seed"):
        await engine(path, task, Notes(), executor=Scores(task, lambda *_: "not-measured"), evaluations=3).evolve()
    await engine(path, task, Notes(), evaluations=3).evolve()
    assert history_of(path).counts.evaluated == 3


async def test_a_repeat_that_the_machine_was_too_busy_for_is_left_for_later(path: Path, tiny: MakeTask) -> None:
    task = replace(tiny(), repeats=2)
    busy = Brittle(task, "not-measured", repeats=True)
    assert (await engine(path, task, Notes(), executor=busy, evaluations=3).evolve()).reason == "evaluations"
    counts = history_of(path).counts
    assert (counts.evaluated, counts.repeated, counts.failed) == (3, 0, 0)


@pytest.mark.slow
async def test_different_candidates_in_a_row_that_break_the_evaluator_end_the_run(task: Task, path: Path) -> None:
    broken = Scores(task, lambda number, split: "evaluator-error" if number > 4 else "ok")
    with pytest.raises(EvaluatorError, match="on 3 different candidates in a row"):
        await engine(path, task, Notes(), executor=broken, evaluations=9).evolve()
    assert len({asked.tree for asked in broken.asked[-7:]}) == 3, "three tries, three tries, and one"


async def test_a_sandbox_that_fails_stops_the_run_and_what_is_pending_is_judged_by_the_next_one(
    task: Task, path: Path
) -> None:

    class Failing(Scores):
        async def evaluate(self, *arguments: Any, **options: Any) -> tuple[Evaluation, Evidence]:
            result = await super().evaluate(*arguments, **options)
            if len(self.asked) >= 5:
                raise SandboxError("the daemon is away")
            return result

    with pytest.raises(SandboxError, match="the daemon is away"):
        await engine(path, task, Notes(), Notes(), evaluations=12, executor=Failing(task)).evolve()
    history = history_of(path)
    assert history.stopped
    assert (history.stopped.reason, history.stopped.detail) == ("error", "the daemon is away")
    left = set(history.pending)
    assert left
    await engine(path, task, Notes(), Notes(), evaluations=12).evolve()
    judged = evaluations_of(path)
    assert len(judged) == len(set(judged))
    assert left <= {candidate for candidate, _ in judged}
    history = history_of(path)
    assert (history.counts.evaluated, history.pending) == (12, {})


async def test_candidates_travel_as_changes_to_the_seed(task: Task, tmp_path: Path) -> None:
    given, bases = dict[str, Files](), set[str]()

    class Looking(Scores):
        def key(self, tree: str, split: str, repeat: int = 0, *, base: str = "") -> str:
            bases.add(base)
            return super().key(tree, split, repeat)

        async def evaluate(
            self, tree: str, files: Files, *, split: str, repeat: int = 0
        ) -> tuple[Evaluation, Evidence]:
            given[tree] = files
            return await super().evaluate(tree, files, split=split)

    run = engine(tmp_path / "r", task, Notes(), evaluations=3, executor=Looking(task))
    await run.evolve()
    trees, seed = run.repository.trees, run.history.phylogeny[run.history.seed or ""].tree
    assert len({id(files.base) for files in given.values()}) == 1, "the seed is packed once"
    base = given[seed].base
    assert base
    assert bases == {base.id, ""}, "once for our own keys, once for the executor's"
    assert base.archive == trees.tar(seed, lambda path: True)
    for tree, files in given.items():
        assert (files.changed, files.removed) == trees.changes(seed, tree, lambda path: True)


async def test_what_two_engines_judged_is_recorded_once(task: Task, path: Path) -> None:

    class Overtaken(Scores):
        async def evaluate(self, tree: str, *arguments: Any, **options: Any) -> tuple[Evaluation, Evidence]:
            evaluation, evidence = await super().evaluate(tree, *arguments, **options)
            history = History("r")
            journal = Repository.open(path).journal("r", history.apply)
            for commit in list(history.pending):
                journal.append(Evaluated(candidate=commit, evaluation=evaluation))
            return evaluation, evidence

    await engine(path, task, Notes(), evaluations=4, executor=Overtaken(task)).evolve()
    judged = evaluations_of(path)
    assert len(judged) == len(set(judged))
    assert history_of(path).counts.evaluated == 4


async def test_agents_keep_their_refs_wherever_the_run_goes_on(task: Task, path: Path) -> None:
    await engine(path, task, Notes(), evaluations=3).evolve()
    (path / ".git" / "evogit" / "created").unlink()  # as in a clone
    await engine(path, task, Notes(), evaluations=30).evolve()
    assert git(path, "rev-parse", "refs/heads/evogit/r/a1").strip() == history_of(path).head("a1")
    assert git(path, "for-each-ref", "refs/evogit/r/agents") == ""


async def test_a_branch_in_the_way_is_said_before_anything_is_written(task: Task, path: Path) -> None:
    repository = Repository.create(path)
    commit = repository.commit(repository.trees.write(None, {}), (), author="x", time=1, title="x", trailers={})
    git(path, "update-ref", "refs/heads/evogit", commit)
    with pytest.raises(RefusedError, match="git branch -m evogit NAME"):
        await engine(path, task, Notes(), evaluations=3).evolve()
    assert Repository.open(path).runs() == []


async def test_an_agent_that_fails_as_it_looks_back_costs_one_proposal_and_not_the_run(task: Task, path: Path) -> None:
    class Speechless(Notes):
        async def advise(self, brief: Brief, rng: random.Random) -> Advice:
            raise ZeroDivisionError

    class Plateau(Scores):
        def _score(self, asked: Asked) -> Answer:
            found, evidence = super()._score(asked)
            return replace(found, metrics={"score": float(asked.number == 2)}), evidence

    options = {"selector": "frugal:merge=no", "population": (AgentSpec(kind="editor", model="m"),)}
    await engine(path, task, Speechless(), executor=Plateau(task), proposals=40, **options).evolve()
    history = history_of(path)
    assert {each.failure for each in history.tactics.values()} == {"the agent itself failed: ZeroDivisionError()"}
    assert len(history.tactics) <= 4
    assert history.counts.charged == 40
