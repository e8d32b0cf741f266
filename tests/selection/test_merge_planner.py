"""Which merges are planned, and how often."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from evogit.events import Duplicate
from evogit.history.phylogeny import MergeBases
from evogit.selection import Move
from evogit.selection.merge_planner import INTERFERING, Planner, expected
from evogit.selection.merge_strategies import RARELY
from evogit.testing import RecordedRun

from .born import METRICS, Born

TIMES = 300
"""Moves of which is counted how many are merges."""


def seeded(cases: Mapping[str, float] | None = None, agents: tuple[str, ...] = ("a1",)) -> Born:
    born = Born(agents)
    born.born(1.0, agent="seed", cases=cases)
    return born


def planned(born: Born, onto: int) -> list[tuple[int, float]]:
    """Return the number of the candidate that gives, and the expected gain; the most promising first."""
    plans = sorted(Planner()._plans(born.history, born.ids[onto]), reverse=True)
    assert {plan.parents[0] for plan in plans} <= {born.ids[onto]}
    return [(born.ids.index(plan.parents[1]), plan.gain) for plan in plans]


def crossed(born: Born, value: float, *parents: int, strategy: str = "fitter") -> None:
    born.judge(born.candidate(*parents, strategy=strategy), value)


def tried(born: Born, move: int, operator: Any, strategy: str, *parents: int) -> None:
    names = tuple(born.ids[each] for each in parents)
    named: dict[str, Any] = {"parents": names, "operator": operator, "strategy": strategy}
    born.append(Duplicate(engine="e", move=move, agent="a1", first=born.ids[0], **named))


def often(born: Born, onto: int, agent: str = "a1") -> list[Move]:
    rng, planner = random.Random(1), Planner()
    found = [planner.move(born.history, born.ids[onto], agent, rng) for _ in range(TIMES)]
    return [move for move in found if move]


def test_a_line_that_improved_since_it_parted_is_merged_onto_the_best() -> None:
    born = seeded()
    born.born(3.0, 0)
    born.born(2.0, 0)
    assert planned(born, 1) == [(2, INTERFERING)]


@pytest.mark.parametrize("value", [1.0, 0.5, None])
def test_what_did_not_improve_its_parent_is_not_merged(value: float | None) -> None:
    born = seeded()
    born.born(3.0, 0)
    born.born(value, 0)
    assert planned(born, 1) == []


def test_neither_ancestors_nor_descendants_nor_the_pruned_are_merged() -> None:
    born = seeded()
    born.born(2.0, 0)
    born.born(3.0, 1)
    born.born(4.0, 2)
    assert planned(born, 2) == []
    other = born.born(2.0, 0)
    assert [number for number, _ in planned(born, 2)] == [other]
    born.decide("prune", other)
    assert planned(born, 2) == []


def test_gains_in_cases_that_the_other_side_left_alone_count_in_full() -> None:
    born = seeded({"x": 1.0, "y": 1.0})
    born.born(2.0, 0, cases={"x": 3.0, "y": 1.0})
    same = born.born(1.5, 0, cases={"x": 2.0, "y": 1.0})
    other = born.born(1.4, 0, cases={"x": 1.0, "y": 1.8})
    assert planned(born, 1) == [(other, pytest.approx(0.4)), (same, pytest.approx(0.25))]


def test_the_direction_of_the_metric_decides_what_a_gain_is() -> None:
    born = Born(metrics=(replace(METRICS[0], direction="minimize"), METRICS[1]))
    born.born(1.0, agent="seed")
    born.born(0.2, 0)
    born.born(0.5, 0)
    born.born(3.0, 0)
    assert planned(born, 1) == [(2, 0.5 * INTERFERING)]


@pytest.mark.parametrize("strategy", ["fitter", "random", "function", "model"])
@pytest.mark.parametrize("parents", [(1, 2), (2, 1)])
def test_what_was_tried_is_not_tried_again_even_if_it_made_nothing_new(strategy: str, parents: tuple[int, int]) -> None:
    born = seeded()
    born.born(3.0, 0)
    born.born(2.0, 0)
    tried(born, 7, "merge", strategy, *parents)
    assert planned(born, 1) == []


def test_what_a_deterministic_run_may_not_know_of_is_not_looked_at() -> None:
    born = seeded()
    born.born(3.0, 0)
    born.born(2.0, 0)
    tried(born, 7, "merge", "fitter", 1, 2)
    born.history.attempts.horizon = 6
    assert len(planned(born, 1)) == 1


@pytest.mark.slow
def test_in_a_deterministic_run_each_plan_is_one_agents_own() -> None:
    agents = ("a1", "a2", "a3", "a4")
    born = seeded(agents=agents)
    born.born(9.0, 0)
    for value in range(12):
        born.born(2.0 + value / 10, 0)
    for agent in agents:
        born.adopt(agent, 1)
    born.history.attempts.horizon = 99
    pairs = {agent: {move.parents for move in often(born, 1, agent)} for agent in agents}
    assert all(len(found) == 1 for found in pairs.values())
    assert len(set.union(*pairs.values())) == len(agents)
    born.history.attempts.horizon = None
    assert {move.parents for agent in agents for move in often(born, 1, agent)} == {(born.ids[1], born.ids[13])}


@pytest.mark.slow
def test_merges_become_rare_where_they_never_help_and_stay_frequent_where_they_do() -> None:
    helping, hindering = seeded(), seeded()
    for born, value in ((helping, 8.0), (hindering, 0.5)):
        onto = born.born(2.5, 0)
        for _ in range(100):
            crossed(born, value, onto, born.born(2.0, 0))
        born.born(9.0, 0)
    assert len(often(helping, len(helping.ids) - 1)) > 0.95 * TIMES
    assert 0 < len(often(hindering, len(hindering.ids) - 1)) < 2 * TIMES * RARELY


@pytest.mark.slow
def test_those_whose_sides_changed_other_cases_are_counted_by_themselves() -> None:
    born = seeded({"x": 1.0, "y": 1.0})
    born.born(2.0, 0, cases={"x": 3.0, "y": 1.0})
    same, other = ({"x": 2.0, "y": 1.0}, {"x": 1.0, "y": 1.5})
    for _ in range(100):
        crossed(born, 0.0, 1, born.born(1.5, 0, cases=same))
    assert len(often(born, 1)) == 0, "all were tried"
    born.born(1.5, 0, cases=same)
    assert 0 < len(often(born, 1)) < 2 * TIMES * RARELY
    last = born.born(1.25, 0, cases=other)
    found = often(born, 1)
    assert len(found) == pytest.approx(TIMES * 2 / 3, rel=0.1)
    assert sum(move.parents[1] == born.ids[last] for move in found) > len(found) - 2 * TIMES * RARELY


@pytest.mark.slow
def test_the_strategy_that_helped_is_drawn_most() -> None:
    born = seeded()
    for _ in range(20):
        crossed(born, 8.0, 0, born.born(2.0, 0), strategy="function")
        crossed(born, 0.0, 0, born.born(2.0, 0), strategy="random")
    born.born(9.0, 0)
    rng, planner = random.Random(1), Planner(strategies=("function", "random"))
    drawn = [move.strategy for _ in range(TIMES) if (move := planner.move(born.history, born.ids[-1], "a1", rng))]
    assert drawn.count("function") > len(drawn) / 2 > drawn.count("random")


def test_a_model_settles_conflicts_only_for_an_agent_that_asks_one() -> None:
    born = seeded()
    started = born.history.started
    assert started
    crew = {"population": [{"kind": "editor", "count": 1}, {"kind": "mutator", "count": 1}]}
    born.append(replace(started, engine="f", agents=("a1", "a2"), settings=crew))
    born.born(2.0, 0)
    born.born(3.0, 0)
    drawn = {agent: {move.strategy for move in often(born, 2, agent=agent)} for agent in ("a1", "a2")}
    assert drawn == {"a1": {"function", "model"}, "a2": {"function"}}, "never line by line"


BASE = [b"def part_%d(x):\n    return x + %d\n" % (number, number) for number in range(8)]


def rewritten(name: bytes, *parts: int) -> dict[str, bytes | None]:
    """The program with some of its functions written anew."""
    anew = {number: b"def %b_%d(x):\n    return 7 * x\n" % (name, number) for number in parts}
    return {"program.py": b"".join(anew.get(number, part) for number, part in enumerate(BASE))}


@pytest.mark.parametrize(
    ("ours", "theirs", "planned"),
    [
        (range(6), range(2, 8), False),
        (range(6), range(6, 8), True),
        (range(2), range(2, 4), True),
    ],
    ids=["both rewrote it", "one rewrote it", "two changes"],
)
def test_two_rewrites_of_one_file_are_not_merged(tmp_path: Path, ours: range, theirs: range, planned: bool) -> None:
    run = RecordedRun(tmp_path / "r")
    seed = run.add_files(rewritten(b"part"), value=1.0)
    best = run.add_files(rewritten(b"ours", *ours), seed, value=3.0)
    run.add_files(rewritten(b"theirs", *theirs), seed, value=2.0)
    planner = Planner(run.repository)
    moves = [planner.move(run.history, best, "a1", random.Random(n)) for n in range(20)]
    assert any(moves) == planned


def test_two_rewrites_of_different_files_are_merged(tmp_path: Path) -> None:
    run = RecordedRun(tmp_path / "r")
    seed = run.add_files({**rewritten(b"part"), "other.py": b"VALUE = 'something long'\n"}, value=1.0)
    best = run.add_files(rewritten(b"ours", *range(8)), seed, value=3.0)
    run.add_files({"other.py": b"VALUE = 'quite another thing'\n"}, seed, value=2.0)
    assert any(Planner(run.repository).move(run.history, best, "a1", random.Random(n)) for n in range(20))


def test_cases_that_differ_in_name_leave_the_whole() -> None:
    born = seeded({"x": 1.0})
    born.born(3.0, 0, cases={"y": 3.0})
    born.born(2.0, 0, cases={"x": 2.0})
    assert expected(born.history, born.ids[1], born.ids[2], born.ids[0]) == INTERFERING


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.integers(0, 30), min_size=0, max_size=2), min_size=1, max_size=25), st.randoms())
def test_the_remembered_merge_bases_are_those_of_the_graph(born_of: list[list[int]], rng: random.Random) -> None:
    born, bases = Born(), MergeBases()
    for parents in born_of:
        born.candidate(*dict.fromkeys(each % len(born.ids) for each in parents if born.ids))
        graph, onto = born.history.phylogeny, rng.choice(born.ids)
        for commit in rng.sample(born.ids, min(4, len(born.ids))):
            assert bases.of(graph, onto, commit) == graph.merge_base(onto, commit)
