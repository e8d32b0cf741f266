"""What earlier changes of named numbers teach, and what is the seed but for them."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evogit.agents import FileContents
from evogit.agents.mutation.mix import Mix
from evogit.agents.mutation.mutator import mutate
from evogit.repository import Repository
from evogit.selection.elitist import DEFAULT, Elitist
from evogit.selection.number_steps import NumberSteps
from evogit.source.numbers import Constant, numbers_of

from .grown import FLAT, Grown

A, B = Constant("m.py", "A", 0), Constant("m.py", "B", 0)


def module(a: float = 0.5, b: float = 0.5, end: str = "") -> dict[str, bytes | None]:
    return {"m.py": f"A = {a!r}\nB = {b!r}\n\n\ndef f(x):\n    return A * x + B{end}\n".encode()}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return Repository.create(tmp_path_factory.mktemp("tuning") / "r")


@pytest.fixture
def grown(repository: Repository) -> Grown:
    return Grown(repository, seed={**module(), "notes.txt": b"-\n"})  # type: ignore[dict-item]


def steps(grown: Grown, parent: int = 0) -> dict[Constant, float]:
    return dict(NumberSteps(grown.repository).steps(grown.history, grown.ids[parent]))


@pytest.mark.parametrize(
    ("cases", "expected"),
    [({"x": 1.0, "y": 0.0}, 0.5), (FLAT, -0.5), ({"x": 1.0, "y": -1.0}, -0.125), ({"x": -1.0, "y": 0.0}, -0.125)],
)
def test_a_step_that_helped_goes_on_one_without_effect_was_too_short_a_bad_one_too_long(
    grown: Grown, cases: dict[str, float], expected: float
) -> None:
    grown.grow(module(a=0.75), cases, 0)
    assert steps(grown) == {A: expected}
    grown.grow(module(a=0.5625), None, 0)
    assert steps(grown) == {A: -0.03125}, "the latest lesson counts, and what is not valid was worse"


def test_of_several_numbers_nobody_knows_which_was_to_blame(grown: Grown) -> None:
    grown.grow(module(a=0.75, b=0.25), {"x": -1.0, "y": 0.0}, 0)
    assert steps(grown) == {A: 0.25, B: -0.25}
    grown.grow(module(a=0.75, b=0.25), FLAT, 0)
    assert steps(grown) == {A: 0.5, B: -0.5}
    grown.grow(module(a=0.25, b=0.25), {"x": 1.0, "y": 0.0}, 0)
    assert steps(grown) == {A: -0.5, B: -0.5}


def test_what_else_changed_teaches_nothing_and_other_code_only_what_its_own_does_not(grown: Grown) -> None:
    other = grown.grow(module(a=0.75, end=" ** 2"), {"x": 1.0, "y": 0.0}, 0)
    assert steps(grown) == {}
    grown.grow(module(a=0.875, b=0.5, end=" ** 2"), {"x": 2.0, "y": 0.0}, other)
    assert steps(grown) == steps(grown, other) == {A: 0.25}
    grown.grow(module(a=0.25), {"x": 1.0, "y": 0.0}, 0)
    assert (steps(grown), steps(grown, other)) == ({A: -0.5}, {A: 0.25})


def test_the_tuned_seed_is_the_fittest_of_those_that_differ_in_named_numbers_alone(grown: Grown) -> None:
    def tuned() -> int:
        return grown.ids.index(NumberSteps(grown.repository).tuned(grown.history, grown.ids[0]))

    grown.grow(module(a=0.75, end=" ** 2"), {"x": 9.0, "y": 0.0}, 0)
    grown.grow({"notes.txt": b"+\n"}, {"x": 9.0, "y": 0.0}, 0)
    grown.grow({"new.py": b"A = 0.5\n"}, {"x": 9.0, "y": 0.0}, 0)
    grown.grow({"m.py": None}, {"x": 9.0, "y": 0.0}, 0)
    grown.grow(module(b=0.25), {"x": -1.0, "y": 0.0}, 0)
    assert tuned() == 0
    good = grown.grow(module(b=0.75), {"x": 1.0, "y": 0.0}, 0)
    better = grown.grow(module(a=0.0, b=0.75), {"x": 2.0, "y": 0.0}, good)
    assert tuned() == better
    grown.decide("prune", better)
    assert tuned() == good


@pytest.mark.parametrize("is_best", [False, True])
def test_some_children_are_the_tuned_seeds_or_where_that_is_the_best_the_seeds(grown: Grown, is_best: bool) -> None:
    tuned = grown.grow(module(b=0.75), {"x": 5.0 if is_best else 1.0, "y": 0.0}, 0)
    grown.adopt("a1", grown.grow(module(end=" ** 2"), {"x": 3.0, "y": 0.0}, 0))
    expected, other = (0, tuned) if is_best else (tuned, 0)
    selector, rng = Elitist(numbers=NumberSteps(grown.repository)), random.Random(1)
    moves = [selector.next_move(grown.history, "a1", rng) for _ in range(300)]
    parents = [move.parents[0] for move in moves if move.operator == "mutation"]
    assert all(move.tuning for move in moves if move.operator == "mutation")
    assert DEFAULT.p_restart - 0.1 < parents.count(grown.ids[expected]) / len(parents) < DEFAULT.p_restart + 0.1
    assert (grown.ids[other] in parents) == is_best


@settings(deadline=None, max_examples=30)
@given(st.randoms(use_true_random=False))
def test_what_is_learned_is_a_function_of_the_history(repository: Repository, rng: random.Random) -> None:
    grown = Grown(repository, seed=module())  # type: ignore[arg-type]
    followed = NumberSteps(grown.repository)
    for number in range(12):
        parent, values = rng.randrange(number + 1), [rng.choice((0.25, 0.5, 1.0)) for _ in range(2)]
        cases = rng.choice([None, {"x": rng.choice((0.0, 1.0)), "y": 0.0}])
        grown.grow(module(*values, end=rng.choice(("", " ** 2"))), cases, parent)
        if rng.random() < 0.2:
            grown.decide("prune", rng.randrange(1, number + 2))
        at = grown.ids[rng.randrange(number + 2)]
        new = NumberSteps(grown.repository)
        assert followed.steps(grown.history, at) == new.steps(grown.history, at)
        assert followed.tuned(grown.history, grown.ids[0]) == new.tuned(grown.history, grown.ids[0])


def climbed(grown: Grown, *, learning: bool, seed: int) -> float:
    """How far from its optimum a bowl of two numbers, one of which is a hundred times as steep, is after 80 steps."""
    files: FileContents = module()  # type: ignore[assignment]
    tuning, best, lost = NumberSteps(grown.repository), 0, -1e9
    for number in range(80):
        known = tuning.steps(grown.history, grown.ids[best]) if learning else {}
        found = {**files, **mutate(files, {}, 1000 * seed + number, Mix(steps=known)).changes}
        numbers = numbers_of("m.py", found["m.py"] or b"").numbers
        if set(numbers) != {A, B}:
            continue
        value = -((numbers[A].value - 9.0) ** 2) - 100 * (numbers[B].value + 0.3) ** 2
        child = grown.grow({"m.py": found["m.py"]}, {"x": value, "y": 0.0}, best)
        if value > lost:
            files, best, lost = {"m.py": found["m.py"] or b""}, child, value
    return -lost


@pytest.mark.slow
def test_learned_steps_find_an_optimum_in_fewer_evaluations(repository: Repository) -> None:
    ends = {
        learning: sorted(climbed(Grown(repository, seed=module()), learning=learning, seed=seed) for seed in range(3))  # type: ignore[arg-type]
        for learning in (True, False)
    }
    assert ends[True][1] < 0.25 * ends[False][1]
