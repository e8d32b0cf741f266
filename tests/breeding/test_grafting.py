"""Grafts: one step of a lineage on another candidate, and what a run makes of them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from evogit.agents import NoUsableChangeError
from evogit.breeding.breeder import Bred
from evogit.config import Task
from evogit.config.run_settings import AgentSpec, Settings
from evogit.core import Evaluation
from evogit.events import Entry, Evaluated
from evogit.history import History
from evogit.repository import Repository
from evogit.review.reporting import merge_statistics
from evogit.run import Run
from evogit.selection import Move
from evogit.selection.elitist import Elitist
from evogit.selection.merge_strategies import available

from .test_breeder import BASE, Nursery, Scripted, proposal


class Garden(Nursery):
    """Two lines: `top` is two steps from the seed, `other` one step; only the second step to `top` is to be grafted."""

    def __init__(self, path: Path, task: Task) -> None:
        super().__init__(path, task)
        first = BASE.replace(b"line 5", b"first 5")
        self.low = self.child(self.seed, first)
        self.top = self.child(self.low, first.replace(b"line 10", b"second 10"))
        self.other = self.child(self.seed, BASE.replace(b"line 15", b"other 15"))

    def child(self, parent: str, program: bytes, more: dict[str, bytes | None] | None = None) -> str:
        return self._add({"program.py": program, **(more or {})}, "m", parent)

    def judge(self, commit: str, value: float) -> None:
        event = Evaluated(candidate=commit, evaluation=Evaluation(status="ok", metrics={"m": value}))
        self.history.apply(Entry(id="x", host="h", seq=1, time=0, event=event))

    async def graft(self, edge: str, onto: str, strategy: str = "fitter", seed: int = 1) -> Bred:
        move = Move(operator="graft", parents=(onto, edge), strategy=strategy)
        return await self.breeder.breed(Scripted(proposal()), move, random.Random(seed))


@pytest.fixture
def garden(tmp_path: Path, tiny: Callable[..., Task]) -> Garden:
    return Garden(tmp_path / "r", tiny())


async def test_only_the_step_is_applied(garden: Garden) -> None:
    bred = await garden.graft(garden.top, garden.other)
    assert garden.program(bred.tree) == BASE.replace(b"line 15", b"other 15").replace(b"line 10", b"second 10")
    assert (bred.operator, bred.parents, bred.conflicts) == ("graft", (garden.other, garden.top), 0)
    assert bred.title == f"graft {garden.low[:7]}→{garden.top[:7]} onto {garden.other[:7]}"


async def test_a_step_that_is_there_already_gives_the_tree_that_is_there(garden: Garden) -> None:
    again = garden.child(garden.top, BASE)
    assert (await garden.graft(garden.top, garden.top)).tree == garden.graph[garden.top].tree
    assert (await garden.graft(again, garden.seed)).tree == garden.graph[garden.seed].tree


async def test_nothing_but_the_result_is_left_in_the_repository(garden: Garden) -> None:
    def objects() -> set[Path]:
        return set((garden.repository.common / "objects").rglob("*"))

    before = objects()
    await garden.graft(garden.top, garden.seed)
    made = {path.parent.name + path.name for path in objects() - before if path.is_file()}
    kinds = {Repository.open(garden.repository.path)._repo[name].type_str for name in made}
    assert kinds <= {"blob", "tree"}
    assert not list(garden.repository.common.glob("evogit/scratch/evogit-graft-*"))


@pytest.mark.parametrize(("better", "line"), [("edge", b"ours 5"), ("onto", b"first 5")])
async def test_conflicts_go_to_the_fitter_one_whatever_is_grafted_on_what(
    garden: Garden, better: str, line: bytes
) -> None:
    garden.judge(garden.ours, 1.0 + (better == "edge"))
    garden.judge(garden.top, 1.5)
    bred = await garden.graft(garden.ours, garden.top)
    assert garden.program(bred.tree).split(b"\n")[5] == line
    assert bred.title.endswith("1 conflict settled: fitter")
    assert bred.conflicts == 1


@pytest.mark.parametrize("what", ["seed", "strategy"])
async def test_what_cannot_be_grafted_is_one_failed_proposal(garden: Garden, what: str) -> None:
    edge, strategy = (garden.seed, "fitter") if what == "seed" else (garden.top, "wish")
    with pytest.raises(NoUsableChangeError, match="has none" if what == "seed" else "got 'wish'"):
        await garden.graft(edge, garden.other, strategy)


async def test_a_step_that_changes_what_is_protected_is_refused(garden: Garden) -> None:
    bad = garden.child(garden.top, BASE, {"secret/judge.py": b"2"})
    with pytest.raises(NoUsableChangeError, match=r"got secret/judge\.py"):
        await garden.graft(bad, garden.other)


async def test_a_folder_with_a_colon_and_quotes_is_no_obstacle(task: Task, tmp_path: Path) -> None:
    garden = Garden(tmp_path / 'a:b "c" \\d', task)
    bred = await garden.graft(garden.top, garden.other)
    assert b"second 10" in garden.program(bred.tree)


class Grafter(Elitist):
    """Grafts and merges as often as it can."""

    def next_move(self, history: History, agent: str, rng: random.Random) -> Move:
        judged = [each for each in history.judgements if history.fitness(each) is not None]
        edges = [each for each in judged if history.phylogeny[each].parents]
        if len(edges) < 4 or rng.random() < 0.4:
            return Move(operator="mutation", parents=(rng.choice(judged),))
        one, other, strategy = rng.choice(edges), rng.choice(judged), rng.choice(available(history, agent))
        if rng.random() < 0.5 and one != other:
            return Move(operator="merge", parents=(other, one), strategy=strategy)
        return Move(operator="graft", parents=(other, one), strategy=strategy)


@pytest.mark.slow
def test_two_deterministic_runs_of_merges_and_grafts_agree_in_every_id(task: Task, tmp_path: Path) -> None:
    runs = []
    for name in ("one", "two"):
        settings = Settings(evaluations=20, deterministic=True, seed=3, population=(AgentSpec("mutator", count=3),))
        run = Run(Repository.create(tmp_path / name), task, "r", settings, selector=Grafter())
        asyncio.run(run.evolve())
        runs.append([(each.commit, each.operator, each.strategy, each.conflicts) for each in run.history.phylogeny])
        found = merge_statistics(run.history)
        assert {row["operator"] for row in found["strategies"]} == {"merge", "graft"}
    assert runs[0] == runs[1]
    assert len({strategy for _, operator, strategy, _ in runs[0] if operator in ("merge", "graft")}) > 1
