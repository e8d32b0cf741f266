"""The mutator's way with named numbers."""

from __future__ import annotations

import math
import statistics

from evogit.agents import Proposal
from evogit.agents.mutation.mix import Mix
from evogit.agents.mutation.mutator import mutate
from evogit.agents.mutation.tuning import ONE, SEVERAL, TUNING
from evogit.source.numbers import Constant, numbers_of

FILES = {
    "a.py": b"A = 1.0\nB = [0.0, 2.0]  # why\nN = 3\n\n\ndef f(x):\n    return A * x + B[0]\n",
    "b.py": b"C = -4.0\n",
}
A, C = Constant("a.py", "A", 0), Constant("b.py", "C", 0)


def tuned(mix: Mix, times: int = 400) -> list[Proposal]:
    found = [mutate(FILES, {}, seed, mix) for seed in range(times)]
    return [each for each in found if each.strategy in TUNING]


def values(proposal: Proposal) -> dict[Constant, float]:
    """The numbers that became others, as they are now."""
    told = {}
    for path, content in proposal.changes.items():
        before, after = numbers_of(path, FILES[path]), numbers_of(path, content or b"")
        assert after.rest == before.rest, "nothing else changes"
        told |= {key: each.value for key, each in after.numbers.items() if each.value != before.numbers[key].value}
    return told


def test_one_named_number_changes_or_about_half_of_all() -> None:
    found = tuned(Mix(steps={}))
    assert 0.6 < len(found) / 400 < 0.8
    assert all(len(values(each)) == 1 for each in found if each.strategy == ONE)
    several = [len(values(each)) for each in found if each.strategy == SEVERAL]
    assert 1.8 < statistics.fmean(several) < 2.4
    assert max(several) == 4
    assert {constant for each in found for constant in values(each)} >= {A, C, Constant("a.py", "B", 1)}


def test_a_single_step_is_about_what_was_learned_and_several_are_spread_as_widely() -> None:
    found = tuned(Mix(steps={A: 0.25, C: -8.0}), 1500)
    ones = [values(each) for each in found if each.strategy == ONE]
    assert 0.2 < statistics.median(each[A] - 1.0 for each in ones if A in each) < 0.3
    assert -9.0 < statistics.median(each[C] + 4.0 for each in ones if C in each) < -7.0
    many = [each for each in map(values, found) if len(each) > 1 and C in each]
    assert 6.0 < statistics.stdev(each[C] + 4.0 for each in many) < 10.0


def test_steps_stay_within_bounds_and_numbers_finite() -> None:
    far = tuned(Mix(steps={A: 1e300, C: -1e-300}))
    assert all(math.isfinite(each) and abs(each) < 1e3 for made in map(values, far) for each in made.values())
    assert any(0 < abs(made[C] + 4.0) < 0.01 for made in map(values, far) if C in made)


def test_nothing_is_tuned_unasked() -> None:
    assert not tuned(Mix())
