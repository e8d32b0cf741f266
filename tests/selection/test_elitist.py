"""What the rule does over many draws, on histories of a few candidates."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from evogit.core import Adopted, Decision, Entry, Evaluated, Evaluation, Event, Metric, Proposed, RunStarted
from evogit.history import History
from evogit.selection import Move
from evogit.selection.elitist import Elitist

A, B, C, S = (letter * 40 for letter in "abc5")


class Population:
    """A history of candidates given as id -> (parents, value); higher is better, None failed."""

    def __init__(self, candidates: dict[str, tuple[tuple[str, ...], float | None]], heads: dict[str, str]) -> None:
        self.history = History("r")
        known: dict[str, Any] = {"task": "", "task_digest": "", "evaluator": "", "provider": "", "image": ""}
        metrics = (Metric(name="m", direction="maximize", primary=True),)
        agents = {"agents": tuple(heads), "population": "", "editable": ()}
        self.add(RunStarted(engine="e", metrics=metrics, split="train", **known, **agents))
        for commit, (parents, value) in candidates.items():
            operator: Any = ("seed", "mutation", "merge")[len(parents)]
            born = {"candidate": commit, "tree": commit, "parents": parents, "agent": "a1", "operator": operator}
            self.add(Proposed(engine="e", move=0, **born))
            ok = Evaluation(status="ok", metrics={"m": value}) if value is not None else Evaluation(status="crashed")
            self.add(Evaluated(candidate=commit, evaluation=ok))
        for agent, head in heads.items():
            self.add(Adopted(agent=agent, candidate=head))

    def add(self, event: Event) -> None:
        self.history.apply(Entry(id=f"{self.history.seq:x}", host="h", seq=self.history.seq + 1, time=0, event=event))

    def moves(self, agent: str = "a1", times: int = 2000) -> list[Move]:
        rng = random.Random(1)
        return [Elitist().next_move(self.history, agent, rng) for _ in range(times)]

    def share(self, parent: str, moves: list[Move]) -> float:
        chosen = Counter(move.parents[0] for move in moves if move.operator == "mutation")
        return chosen[parent] / chosen.total()


def two_lines(a: float, b: float) -> Population:
    return Population({S: ((), 1.0), A: ((S,), a), B: ((S,), b)}, {"a1": A, "a2": B})


@pytest.mark.parametrize(("value", "adopts"), [(2.5, True), (2.0, True), (1.9, False), (None, False)])
def test_a_child_that_is_no_worse_takes_the_place(value: float | None, adopts: bool) -> None:
    population = Population({S: ((), 1.0), A: ((S,), 2.0), B: ((A,), value)}, {"a1": A})
    assert Elitist().adopts(population.history, "a1", B) is adopts


def test_a_pruned_child_takes_no_place() -> None:
    population = Population({S: ((), 1.0), A: ((S,), 9.0)}, {"a1": S})
    population.add(Decision(kind="prune", by="Ada", candidates=(A,)))
    assert not Elitist().adopts(population.history, "a1", A)


def test_parents_are_mostly_the_own_individual_and_now_and_then_a_better_one() -> None:
    moves = two_lines(2.0, 3.0).moves()
    population = two_lines(2.0, 3.0)
    assert population.share(A, moves) == pytest.approx(0.85, abs=0.05)
    assert population.share(B, moves) == pytest.approx(0.15, abs=0.05), "the better of two drawn ones, of a fifth"
    assert {(move.parents[0], move.donor) for move in moves if move.operator == "mutation"} == {(A, B), (B, A)}


def test_a_promoted_candidate_is_favoured_until_it_is_pruned() -> None:
    population = Population({S: ((), 1.0), A: ((S,), 2.0), C: ((S,), 1.0)}, {"a1": A})
    assert population.share(C, population.moves()) == 0
    population.add(Decision(kind="promote", by="Ada", candidates=(C,)))
    assert population.share(C, population.moves()) == pytest.approx(0.25, abs=0.05)
    population.add(Decision(kind="prune", by="Ada", candidates=(C,)))
    assert population.share(C, population.moves()) == 0


def test_lines_that_both_improved_since_they_parted_merge_the_fitter_first() -> None:
    merges = [move for move in two_lines(2.0, 3.0).moves() if move.operator == "merge"]
    assert len(merges) == pytest.approx(200, abs=60)
    assert {move.parents for move in merges} == {(B, A)}
    assert {move.strategy for move in merges} == {"fitter", "random"}


@pytest.mark.parametrize("b", [1.0, 0.5])
def test_a_line_that_did_not_improve_is_not_merged(b: float) -> None:
    assert {move.operator for move in two_lines(2.0, b).moves()} == {"mutation"}


def test_an_ancestor_is_not_merged_with_its_descendant() -> None:
    population = Population({S: ((), 1.0), A: ((S,), 2.0), B: ((A,), 3.0)}, {"a1": A, "a2": B})
    assert {move.operator for move in population.moves()} == {"mutation"}
