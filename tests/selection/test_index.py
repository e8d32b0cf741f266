"""Indexes that follow a history equal new ones, and plain definitions of what they hold."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evogit.core import MINIMIZE
from evogit.events import Decision
from evogit.history import History
from evogit.selection import Selector
from evogit.selection.elitist import Elitist
from evogit.selection.islands import Islands, IslandsOptions
from evogit.selection.map_elites import Axis, MapElites
from evogit.selection.pareto import Fronts, Leaders, Pareto, ParetoOptions, dominates
from evogit.selection.pool import Offspring, Ranking
from evogit.selection.weighted import Weighted

from .born import Born

pytestmark = pytest.mark.slow

AGENTS = ("a1", "a2", "a3", "human", MINIMIZE)
VALUE = st.none() | st.integers(0, 3).map(float)
WHO = st.integers(0, 30)

EVENTS = st.one_of(
    st.tuples(
        st.just("born"), st.lists(WHO, min_size=1, max_size=2), st.sampled_from(AGENTS), VALUE, st.integers(0, 3)
    ),
    st.tuples(st.just("candidate"), WHO),
    st.tuples(st.just("judge"), WHO, VALUE, st.integers(0, 2)),
    st.tuples(st.just("broken"), WHO),
    st.tuples(st.just("holdout"), WHO),
    st.tuples(st.just("prune"), WHO, st.booleans()),
    st.tuples(st.just("promote"), WHO),
    st.tuples(st.just("undo"), WHO),
    st.tuples(st.just("adopt"), WHO, st.sampled_from(AGENTS[:3])),
    st.tuples(st.just("change-task")),
    st.tuples(st.just("ask")),
)


def happen(born: Born, event: tuple[Any, ...]) -> None:
    kind, *known = event

    def who(number: int) -> int:
        return number % len(born.ids)

    if kind == "born":
        parents, agent, value, other = known
        cases = {f"c{each}": float(value == each) for each in range(3)} if value is not None else {}
        born.born(value, *dict.fromkeys(map(who, parents)), agent=agent, other=float(other), cases=cases)
    elif kind == "candidate":
        born.candidate(who(known[0]))
    elif kind == "judge":
        born.judge(who(known[0]), known[1], cases={"c1": known[1] or 0.0}, repeat=known[2])
    elif kind == "broken":
        born.judge(who(known[0]), None, status="evaluator-error")
    elif kind == "holdout":
        born.judge(who(known[0]), 1.0, split="holdout")
    elif kind in ("prune", "promote"):
        born.decide(kind, who(known[0]), subtree=known[1] if kind == "prune" else False)
    elif kind == "undo" and born.history.decisions:
        entry = born.history.decisions[known[0] % len(born.history.decisions)]
        born.append(Decision(kind="undo", by="Ada", undoes=entry.id))
    elif kind == "adopt":
        born.adopt(known[1], who(known[0]))
    elif kind == "change-task":
        born.change_task()


def measured(history: History, commit: str) -> float | None:
    evaluation = history.evaluation(commit)
    return evaluation.metrics.get("n") if evaluation else None


GRID = [(measured, Axis(0.0, 2.0, 2))]


def held(history: History) -> list[str]:
    """Return all that may breed, by a plain look at everything."""
    assert not any(history.phylogeny[commit].agent == MINIMIZE for commit in history.judgements)
    may = [commit for commit in history.judgements if commit not in history.pruned]
    return [commit for commit in may if history.fitness(commit) is not None]


def told(index: Any, history: History) -> Any:
    """Return what an index holds, as plain values."""
    if isinstance(index, MapElites):
        return index.elites(history)
    return [front.members for front in index.of(history)] if isinstance(index, Fronts) else index.of(history)


MAKERS = [Ranking, Offspring, Leaders, lambda: Fronts(2), lambda: MapElites(GRID)]


def by_definition(history: History) -> list[Any]:
    """The same as `told` for each of `MAKERS`, where that has a plain definition."""
    number = {commit: history.phylogeny[commit].number for commit in held(history)}
    ranked = sorted((-(history.fitness(commit) or 0.0), number[commit], commit) for commit in number)
    children = Counter(parent for commit in history.judgements for parent in history.phylogeny[commit].parents)
    cases: dict[str, list[Any]] = {}
    for each in ranked:
        for case, values in history.evaluation(each[2]).cases.items():  # type: ignore[union-attr]
            cases.setdefault(case, []).append((values["m"], each))
    best = {case: max((value, -each[0]) for value, each in known) for case, known in cases.items()}
    leaders = [[each[2] for value, each in cases[case] if (value, -each[0]) == best[case]] for case in sorted(cases)]
    vectors = {commit: (-worse, -(measured(history, commit) or 0.0)) for worse, _, commit in ranked}
    fronts, rest = [], set(vectors.values())
    while rest and len(fronts) < 2:
        front = {each for each in rest if not any(dominates(one, each) for one in rest)}
        members = {one: [commit for _, _, commit in ranked if vectors[commit] == one] for one in front}
        fronts.append(members)
        rest -= front
    elites: dict[Any, str] = {}
    for each in ranked:
        elites.setdefault((min(1, int(measured(history, each[2]) or 0)),), each[2])
    return [ranked, children, leaders, fronts, elites]


def lived(events: list[tuple[Any, ...]], asked: Any, repeats: int = 0) -> Born:
    """A history to which these things happen, about which somebody asks now and then."""
    born = Born(AGENTS[:3], repeats=repeats)
    born.born(1.0, agent="seed", cases={"c1": 1.0})
    for event in events:
        happen(born, event)
        if event[0] == "ask":
            asked(born.history)
    return born


@settings(max_examples=60, deadline=None)
@given(st.lists(EVENTS, max_size=40))
def test_an_index_that_followed_equals_recomputation(events: list[tuple[Any, ...]]) -> None:
    followed: list[Any] = [make() for make in MAKERS]
    history = lived(events, lambda history: [told(index, history) for index in followed]).history
    now = [told(index, history) for index in followed]
    assert now == [told(make(), history) for make in MAKERS]
    assert now == by_definition(history)


SELECTORS: dict[str, Any] = {
    "elitist": Elitist,
    "weighted": Weighted,
    "cases": lambda: Pareto(ParetoOptions("cases")),
    "metrics": lambda: Pareto(ParetoOptions("metrics")),
    "grid": lambda: MapElites(GRID),
    "islands": lambda: Islands(IslandsOptions(count=2, every=2)),
    "three islands": lambda: Islands(IslandsOptions(count=3, every=3, migrants=2)),
}


def choices(selector: Selector, history: History) -> list[object]:
    rng = random.Random(5)
    found: list[object] = [selector.next_move(history, agent, rng) for agent in AGENTS[:3] for _ in range(3)]
    return found + [selector.adopts(history, "a1", commit) for commit in held(history)]


@settings(max_examples=40, deadline=None)
@given(st.lists(EVENTS, max_size=40), st.sampled_from([0, 4]))
def test_choices_depend_on_the_history_alone_whatever_was_asked_before(
    events: list[tuple[Any, ...]], repeats: int
) -> None:
    elsewhere = lived([], lambda history: None).history
    followed: list[Selector] = [make() for make in SELECTORS.values()]
    history = lived(events, lambda history: [choices(each, history) for each in followed], repeats).history
    for selector in followed[::2]:
        choices(selector, elsewhere)
    for followed_one, name in zip(followed, SELECTORS, strict=True):
        assert choices(followed_one, history) == choices(SELECTORS[name](), history), name


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(st.lists(EVENTS, max_size=120), st.sampled_from([0, 4]))
def test_both_hold_for_longer_histories(events: list[tuple[Any, ...]], repeats: int) -> None:
    test_an_index_that_followed_equals_recomputation.hypothesis.inner_test(events)  # type: ignore[attr-defined]
    test_choices_depend_on_the_history_alone_whatever_was_asked_before.hypothesis.inner_test(events, repeats)  # type: ignore
