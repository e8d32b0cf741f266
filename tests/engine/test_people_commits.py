"""Commits of people as candidates: where they descend from, what is refused, and how a run takes them in."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from evogit.agents import Brief, NoUsableChangeError, Proposal
from evogit.core import Evaluation, RefusedError
from evogit.engine.people_commits import Adding, People
from evogit.engine.projections import Projections
from evogit.engine.start import Start
from evogit.events import Adopted, Decision, Evaluated, FailedProposal
from evogit.history import History
from evogit.history.context import RunContext
from evogit.run import Run, Settings
from evogit.selection.elitist import Elitist
from evogit.testing import ScriptedAgent
from tests.clock import PATIENCE
from tests.own import Own, main


def adding(own: Own) -> Adding:
    return Adding(own.stored)


def judge(own: Own, commit: str, value: float) -> None:
    evaluation = Evaluation(status="ok", metrics={"score": value}, evaluator=own.task.evaluator_digest)
    own.journal.append(Evaluated(candidate=commit, evaluation=evaluation))


def test_a_commit_becomes_a_candidate_unchanged_below_its_nearest_candidate(own: Own) -> None:
    better = own.add(2, own.seed, files=main(2))
    own.git("switch", "-q", "--detach", better)
    own.save("a step\x1b[1m", main(3))
    commit = own.save("another", main(4))
    assert adding(own).add(commit, "from Ada")
    candidate = own.history.phylogeny[commit]
    assert (candidate.agent, candidate.operator, candidate.parents) == ("human", "human", (better,))
    assert candidate.title == "another"
    waiting = own.history.pending[commit]
    assert (waiting.engine, waiting.move) == ("", 2)
    assert own.repository.trees.files(own.history.sessions[commit], lambda path: True) == {"why": b"from Ada"}
    assert adding(own).add(commit) is None
    assert adding(own).known(commit) == commit


@pytest.mark.slow
def test_a_merge_of_two_candidates_has_both_as_parents(own: Own) -> None:
    one = own.add(2, own.seed, files=main(2))
    two = own.add(2, one, files={"src/other.py": "x = 1\n"})
    three = own.add(2, own.seed, files={"src/third.py": "x = 1\n"})
    own.git("switch", "-q", "--detach", two)
    own.git("merge", "-q", "--no-edit", three)
    assert adding(own).parents(own.git("rev-parse", "HEAD")) == (two, three)
    own.git("switch", "-q", "--detach", one)
    own.git("merge", "-q", "--no-ff", "--no-edit", two)
    assert adding(own).parents(own.git("rev-parse", "HEAD")) == (two,)


def test_a_commit_that_landed_a_candidate_stands_for_it(own: Own) -> None:
    better = own.add(2, own.seed, files=main(2))
    landed = own.save("landed by hand", main(2))
    branch = "refs/heads/evogit/r/land/x"
    own.journal.append(Decision(kind="land", by="Ada", candidates=(better,), branch=branch, commit=landed))
    assert adding(own).parents(own.save("more", main(3))) == (better,)


@pytest.mark.slow
def test_work_that_does_not_descend_from_the_seed_is_a_change_of_the_seed(own: Own) -> None:
    own.git("switch", "-q", "--orphan", "patch")
    own.git("checkout", "-q", "main", "--", ".")
    commit = own.save("from a mail", main(5))
    assert adding(own).add(commit)
    assert own.history.phylogeny[commit].parents == (own.seed,)
    assert own.history.phylogeny.merge_base(commit, own.seed) == own.seed


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({"README.md": "mine\n"}, r"differs from the seed in README.md; put your change on"),
        ({"hidden/case.txt": "2\n"}, r"differs from the seed in hidden/case.txt"),
        ({"src/big.bin": "version https://git-lfs.github.com/spec/v1\noid sha256:0\n"}, "pointer of Git LFS"),
        ({"src/link": "main.py"}, "a link or a submodule"),
        ({"src/Main.py": "x = 1\n"}, "'src/Main.py' differs from a neighbour only in case"),
        ({"src/large.py": "#" * (9 << 20)}, "8,388,608 bytes of them at most, got .*; begin a run from a seed"),
    ],
)
def test_what_no_agent_could_have_proposed_is_refused(own: Own, files: dict[str, str], sentence: str) -> None:
    if "src/link" in files:
        (own.folder / "src" / "link").symlink_to("main.py")
        files = {}
    commit = own.save("a change", files)
    with pytest.raises(RefusedError, match=sentence):
        adding(own).add(commit)
    assert own.history.human == []


def test_a_run_does_not_begin_with_a_branch_of_people(own: Own) -> None:
    """An archive may have one, whose commits would count as the user's."""
    own.git("branch", "evogit/new/human/x")
    context = RunContext(own.repository, History("new"), own.journal, own.task)
    with pytest.raises(RefusedError, match="evogit/new/human/x"):
        Start(context, Settings()).check(own.task.evaluator_digest)


def test_a_branch_of_a_person_is_picked_up_and_a_refusal_is_journalled_once(own: Own) -> None:
    own.git("switch", "-q", "-c", "evogit/own/human/ada")
    good = own.save("good", main(2))
    people = People(adding(own), lambda agent, child: None)
    people.look()
    assert own.history.human == [good]
    bad = own.save("bad", {"README.md": "mine\n"})
    for each in (people, people, People(adding(own), lambda agent, child: None)):
        each.look()
    failures = [event for event in own.history.failures if isinstance(event, FailedProposal)]
    assert [(event.agent, event.reason[:40]) for event in failures] == [("human", bad)]
    assert "README.md" in failures[0].reason


def test_a_broken_branch_ends_no_run_and_one_that_names_another_is_followed(own: Own) -> None:
    human = own.folder / ".git" / "refs" / "heads" / "evogit" / "own" / "human"
    human.mkdir(parents=True)
    own.git("switch", "-q", "-c", "feature")
    good = own.save("good", main(2))
    nowhere = "tree " + "1" * 40 + "\nauthor x <x> 1 +0000\ncommitter x <x> 1 +0000\n\nx\n"
    (own.folder / "object").write_text(nowhere)
    treeless = own.git("hash-object", "-t", "commit", "-w", "--literally", "object")
    broken = {"link": "ref: refs/heads/feature", "loop": "ref: refs/heads/evogit/own/human/loop", "none": "1" * 40}
    for name, text in {**broken, "blob": own.git("rev-parse", "HEAD:README.md"), "treeless": treeless}.items():
        (human / name).write_text(f"{text}\n")
    People(adding(own), lambda agent, child: None).look()
    assert own.history.human == [good]
    assert [event.reason[:40] for event in own.history.failures] == [treeless]


def test_a_judged_commit_becomes_the_individual_of_human_whose_branches_stay(own: Own) -> None:
    def adopt(agent: str, child: str) -> None:
        if Elitist().adopts(own.history, agent, child):
            own.journal.append(Adopted(agent=agent, candidate=child))

    people = People(adding(own), adopt)
    commits = [own.save(f"to {value}", main(value)) for value in (3, 0, 4)]
    for commit in commits:
        adding(own).add(commit)
        people.consider()
    assert "human" not in own.history.heads
    for commit, value in zip(commits, (3, 0, 4), strict=True):
        judge(own, commit, value)
        people.consider()
    assert own.history.heads["human"] == commits[2]
    assert commits[2] in own.history.living()
    seq = own.history.seq
    People(adding(own), adopt).consider()
    assert own.history.seq == seq
    Projections(own.repository, own.history).follow()
    assert own.repository.target("refs/evogit/own/agents/human") is None


def test_a_persons_commit_on_the_branch_of_the_best_is_not_lost(own: Own, caplog: pytest.LogCaptureFixture) -> None:
    projections = Projections(own.repository, own.history)
    projections.follow()
    own.git("switch", "-q", "evogit/own/best")
    mine = own.save("mine", {"notes.txt": "1\n"})
    own.git("switch", "-q", "main")
    best = own.add(2, own.seed, files=main(2))
    projections.follow()
    projections.follow()
    assert own.git("rev-parse", "evogit/own/best") == mine
    assert [each.getMessage().partition(",")[0] for each in caplog.records] == [f"evogit/own/best is at {mine[:7]}"]
    own.git("branch", "-m", "evogit/own/best", "kept")
    projections.follow()
    assert own.git("rev-parse", "evogit/own/best") == best


# --- with an engine -----------------------------------------------------------------------------------------------


async def nothing(brief: Brief, rng: object) -> Proposal:
    await asyncio.sleep(0.02)
    raise NoUsableChangeError("nothing comes to mind")


def engine(own: Own, **settings: Any) -> Run:
    about, task = Settings(sandbox="bubblewrap", jobs=1, **settings), replace(own.task, splits=("train",))
    return Run(own.repository, task, "live", about, agents=[ScriptedAgent(nothing)])


@pytest.mark.slow
def test_a_running_engine_judges_people_within_its_budget_and_breeds_from_them(own: Own) -> None:
    """Four candidates wait for three places: the fourth stays until the run gets more."""
    engine_run = engine(own, evaluations=4)

    async def live() -> None:
        evolving = asyncio.create_task(engine_run.evolve())
        while engine_run.history.seed is None or engine_run.history.pending:
            await asyncio.sleep(0.02)
        for value in (2, 3):
            own.git("switch", "-q", "-C", f"evogit/live/human/{value}", "main")
            own.save(f"to {value}", main(value))
        added = Adding(engine_run.context)
        while engine_run.history.counts.evaluated < 3:
            await asyncio.sleep(0.02)
        own.git("switch", "-q", "-C", "mine", "main")
        for value in (4, 5):
            added.add(own.save(f"to {value}", main(value)))
        assert (await evolving).reason == "evaluations"

    asyncio.run(asyncio.wait_for(live(), PATIENCE))
    history = engine_run.history
    assert history.counts.evaluated == 4
    assert len(history.pending) == 1
    assert history.fitness(history.best or "") == 4.0
    assert history.heads["human"] == history.best
    more = engine(own, evaluations=5)
    asyncio.run(more.evolve())
    assert (more.history.counts.evaluated, len(more.history.pending)) == (5, 0)
    assert more.history.heads["human"] == more.history.best


@pytest.mark.slow
def test_what_people_added_is_judged_before_a_run_ends_at_its_proposals(own: Own) -> None:
    first = engine(own, proposals=2)
    asyncio.run(first.evolve())
    commit = own.save("to 7", main(7))
    Adding(first.context).add(commit)
    again = engine(own, proposals=3)
    asyncio.run(again.evolve())
    assert again.history.best == commit


@pytest.mark.slow
def test_what_is_excluded_is_no_persons_to_change_either(own: Own) -> None:
    own.task = replace(own.task, editable=("**",), excluded=("README.md",))
    run = engine(own, proposals=1)
    asyncio.run(run.evolve())
    commit = own.save("a change", {"README.md": "mine\n", **main(9)})
    with pytest.raises(RefusedError, match="differs from the seed in README.md"):
        Adding(run.context).add(commit)
