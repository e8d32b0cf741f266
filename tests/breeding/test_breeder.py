"""From a move to a tree and to the parents that are told."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from evogit.agents import Agent, Brief, NoUsableChangeError, Proposal
from evogit.breeding.breeder import DRAWN, Breeder
from evogit.config import Task
from evogit.core import Candidate, Evaluation, Metric, RepositoryError
from evogit.events import Entry, Evaluated, RunStarted
from evogit.history import History
from evogit.repository import Repository
from evogit.repository.evidence import read_feedback
from evogit.selection import Move

BASE = b"".join(b"line %d\n" % number for number in range(20))


class Scripted(Agent):
    """An agent that proposes what it was given and remembers its brief."""

    kind = "scripted"

    def __init__(self, proposal: Proposal) -> None:
        self._proposal = proposal
        self.brief: Brief

    async def propose(self, brief: Brief, rng: random.Random) -> Proposal:
        self.brief = brief
        return self._proposal


class Prolific(Scripted):
    """One that goes on with new numbers, the same one twice each time, and counts what it was asked for."""

    kind = "prolific"
    prolific = True
    asked = 0

    def __init__(self, first: bytes, *, endless: bool = False) -> None:
        super().__init__(Proposal(changes={"program.py": first}, title="first"))
        self._endless = endless

    def proposals(self, brief: Brief, rng: random.Random) -> Iterator[Proposal]:
        while True:
            self.asked += 1
            another = self.asked > 2 and not self._endless
            yield Proposal(changes={"program.py": b"another"}, title="another") if another else self._proposal


class Nursery:
    """A repository with a seed and two children that differ from it in conflict and elsewhere."""

    def __init__(self, path: Path, task: Task) -> None:
        self.repository = Repository.create(path)
        self.history = History("r")
        self.task = task
        self.graph = self.history.phylogeny
        self._start()
        self.breeder = Breeder(self.repository, task, self.history)
        self.seed = self._add({"program.py": BASE, "secret/judge.py": b"1"}, "seed")
        self.ours = self._add({"program.py": BASE.replace(b"line 5", b"ours 5").replace(b"line 15", b"ours 15")}, "m")
        self.theirs = self._add({"program.py": BASE.replace(b"line 5", b"theirs 5").replace(b"line 1\n", b"t\n")}, "m")

    def _start(self) -> None:
        metrics = (Metric(name="m", direction="maximize", primary=True),)
        known = {"task": "", "task_digest": "", "evaluator": "", "provider": "", "image": "", "population": ""}
        started = RunStarted(engine="e", metrics=metrics, split="train", agents=(), editable=(), **known)  # type: ignore[arg-type]
        self.history.apply(Entry(id="1", host="h", seq=1, time=0, event=started))

    def _add(self, files: dict[str, bytes | None], operator: str, parent: str = "") -> str:
        parents = () if operator == "seed" else (parent or self.seed,)
        tree = self.repository.trees.write(self.graph[parents[0]].tree if parents else None, files)
        commit = self.repository.commit(tree, parents, author="a1", time=len(self.graph), title="x", trailers={})
        kind = "mutation" if parents else "seed"
        number = len(self.graph)
        self.graph.add(Candidate(commit=commit, tree=tree, parents=parents, agent="a1", operator=kind, number=number))  # type: ignore[arg-type]
        return commit

    def journal_trees(self) -> None:
        """Let the history know who has which tree."""
        self.history.seed = self.seed
        self.history.trees = {candidate.tree: candidate.commit for candidate in self.graph}

    def program(self, tree: str) -> bytes:
        return self.repository.trees.files(tree, lambda path: path == "program.py")["program.py"]


@pytest.fixture
def nursery(tmp_path: Path, tiny: Callable[..., Task]) -> Nursery:
    return Nursery(tmp_path / "r", tiny())


def proposal(used_donor: bool = False, **changes: bytes) -> Proposal:
    return Proposal(changes={"program.py": b"new\n", **changes}, title="new", used_donor=used_donor)


@pytest.mark.parametrize("used", [True, False])
async def test_whose_code_was_taken_is_a_parent_and_who_was_only_shown_is_not(nursery: Nursery, used: bool) -> None:
    move = Move(operator="mutation", parents=(nursery.ours,), donor=nursery.theirs)
    bred = await nursery.breeder.breed(Scripted(proposal(used)), move, random.Random(1))
    assert bred.parents == ((nursery.ours, nursery.theirs) if used else (nursery.ours,))
    assert bred.operator == ("merge" if used else "mutation")


async def test_an_agent_is_shown_what_it_may_edit_and_nothing_else(nursery: Nursery) -> None:
    agent = Scripted(proposal())
    await nursery.breeder.breed(agent, Move(operator="mutation", parents=(nursery.seed,)), random.Random(1))
    assert dict(agent.brief.files) == {"program.py": BASE}
    assert not agent.brief.donor_files


async def test_one_change_out_of_bounds_refuses_all(nursery: Nursery) -> None:
    agent = Scripted(proposal(**{"secret/judge.py": b"0"}))
    with pytest.raises(NoUsableChangeError, match="got secret/judge.py"):
        await nursery.breeder.breed(agent, Move(operator="mutation", parents=(nursery.seed,)), random.Random(1))


async def test_a_change_outside_of_evolve_marks_is_refused(nursery: Nursery) -> None:
    marked = b"A = 1\n# EVOLVE-BLOCK-START\nB = 1\n# EVOLVE-BLOCK-END\n"
    move = Move(operator="mutation", parents=(nursery._add({"program.py": marked}, "mutation", nursery.seed),))
    agent = Scripted(proposal(**{"program.py": marked.replace(b"A = 1", b"A = 2")}))
    with pytest.raises(NoUsableChangeError, match=r"between EVOLVE-BLOCK-START and EVOLVE-BLOCK-END.*program\.py"):
        await nursery.breeder.breed(agent, move, random.Random(1))
    agent = Scripted(proposal(**{"program.py": marked.replace(b"B = 1", b"B = 2")}))
    assert (await nursery.breeder.breed(agent, move, random.Random(1))).parents == move.parents


async def test_small_steps_do_not_add_up_to_a_candidate_without_end(nursery: Nursery) -> None:
    """Two sessions may each add many files, or large ones, but not both to one candidate."""
    for many in ({f"n{n}": b"x" for n in range(300)}, {f"large{n}": b"%d" % n * (5 << 20) for n in range(1)}):
        parent = nursery._add(dict(many), "mutation", nursery.seed)
        agent = Scripted(Proposal(changes={f"extra/{path}": content for path, content in many.items()}, title="more"))
        with pytest.raises(NoUsableChangeError, match="differs from the seed in 500 files and 8,388,608 bytes of them"):
            await nursery.breeder.breed(agent, Move(operator="mutation", parents=(parent,)), random.Random(1))


OURS = BASE.replace(b"line 5", b"ours 5").replace(b"line 15", b"ours 15")


async def test_a_prolific_agent_draws_again_until_nobody_has_had_the_same(nursery: Nursery) -> None:
    nursery.journal_trees()
    move = Move(operator="mutation", parents=(nursery.seed,))
    agent = Prolific(OURS)
    assert (await nursery.breeder.breed(agent, move, random.Random(1))).title == "another"
    assert agent.asked == 3, "no more are drawn than are wanted"
    endless = Prolific(OURS, endless=True)
    assert (await nursery.breeder.breed(endless, move, random.Random(1))).tree == nursery.graph[nursery.ours].tree
    assert endless.asked == DRAWN


async def test_in_a_deterministic_run_only_what_was_evaluated_counts_as_had(nursery: Nursery) -> None:
    nursery.journal_trees()
    breeder = Breeder(nursery.repository, nursery.task, nursery.history, deterministic_agents=2)
    move = Move(operator="mutation", parents=(nursery.seed,))
    assert (await breeder.breed(Prolific(OURS), move, random.Random(1))).title == "first"
    ok = Evaluation(status="ok", metrics={"m": 1.0})
    event = Evaluated(candidate=nursery.ours, evaluation=ok)
    nursery.history.apply(Entry(id="2", host="h", seq=2, time=0, event=event))
    assert (await breeder.breed(Prolific(OURS), move, random.Random(1))).title == "another"


async def test_conflicts_go_to_the_fitter_side_or_to_chance(nursery: Nursery) -> None:
    sides, rng = set(), random.Random(1)
    for strategy in ["fitter"] + 12 * ["random"]:
        move = Move(operator="merge", parents=(nursery.ours, nursery.theirs), strategy=strategy)
        bred = await nursery.breeder.breed(Scripted(proposal()), move, rng)
        lines = nursery.program(bred.tree).split(b"\n")
        assert (lines[1], lines[15]) == (b"t", b"ours 15"), "what does not conflict comes from both"
        assert bred.title.endswith(f"1 conflict settled: {strategy}")
        if strategy == "fitter":
            assert lines[5] == b"ours 5"
        sides.add(lines[5])
    assert sides == {b"ours 5", b"theirs 5"}


async def test_by_definitions_a_file_that_has_none_is_taken_whole(nursery: Nursery) -> None:
    move = Move(operator="merge", parents=(nursery.ours, nursery.theirs), strategy="function")
    bred = await nursery.breeder.breed(Scripted(proposal()), move, random.Random(1))
    assert nursery.program(bred.tree) == nursery.program(nursery.graph[nursery.ours].tree), "no mixture of lines"


async def test_a_repository_that_lacks_objects_is_no_fault_of_the_agent(nursery: Nursery) -> None:
    tree = nursery.graph[nursery.seed].tree
    (nursery.repository.common / "objects" / tree[:2] / tree[2:]).unlink()
    fresh = Repository.open(nursery.repository.path)
    breeder = Breeder(fresh, nursery.task, nursery.history)
    with pytest.raises(RepositoryError):
        await breeder.breed(Scripted(proposal()), Move(operator="mutation", parents=(nursery.seed,)), random.Random(1))


async def test_a_merge_that_brings_two_names_for_one_is_not_usable(nursery: Nursery) -> None:
    new, twin = (nursery._add({f"{name}.py": b"x = 1\n"}, "m") for name in ("new", "New"))
    move = Move(operator="merge", parents=(new, twin), strategy="fitter")
    with pytest.raises(NoUsableChangeError, match=r"'New.py' differs from a neighbour only in case"):
        await nursery.breeder.breed(Scripted(proposal()), move, random.Random(1))


@pytest.mark.parametrize("damaged", [b"", b"{", b"[1]", b"[" * 100_000, b"\xff"])
def test_damaged_evidence_says_nothing(damaged: bytes) -> None:
    assert read_feedback(damaged) == {}
    assert read_feedback(b'{"x": 3, "y": "said"}') == {"y": "said"}
