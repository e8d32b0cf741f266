"""Merges that become the best, and those that gained too little for what they carry along."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from evogit.history.leaders import contender
from evogit.selection.elitist import Elitist
from evogit.selection.frugal import Frugal
from evogit.testing import SCORE, RecordedHistory


def two_rewrites(**started: object) -> tuple[RecordedHistory, str, str]:
    """A seed, and two rewrites of it that gained 0.2177 and 0.147."""
    run = RecordedHistory(**started)
    seed = run.add(0.6849)
    return run, run.add(0.9026, seed), run.add(0.8319, seed)


@pytest.mark.parametrize(("gain", "wins"), [(1.39e-5, False), (0.0, False), (0.001, False), (0.002, True)])
def test_a_merge_becomes_the_best_by_a_share_of_what_it_was_made_to_add(gain: float, wins: bool) -> None:
    run, best, other = two_rewrites()
    merge = run.add(0.9026 + gain, best, other, strategy="function")
    assert (run.history.best == merge) == (run.history.latest_best == merge) == wins
    assert Frugal().adopts(run.history, "a1", merge) == Elitist().adopts(run.history, "a1", merge) == wins
    assert run.history.records[-1] == (merge if wins else best)


def test_the_share_follows_the_metric_and_small_steps_stay_small() -> None:
    run, best, other = two_rewrites(metrics=(replace(SCORE, direction="minimize"),))
    assert run.history.best != best
    run = RecordedHistory()
    start = run.add(1.0, run.add(0.0))
    one, two = run.add(1.0 + 2e-6, start), run.add(1.0 + 1e-6, start)
    assert run.history.best == one
    assert run.history.best != run.add(1.0 + 2e-6 + 1e-9, one, two, strategy="fitter")
    merge = run.add(1.0 + 3e-6, one, two, strategy="fitter")
    assert run.history.best == merge, "it has both gains"


def test_changes_become_the_best_by_any_gain_also_with_lines_of_a_second_candidate() -> None:
    run, best, other = two_rewrites()
    with_donor = run.add(0.9026 + 1e-6, best, other)
    assert run.history.best == with_donor
    assert run.add(0.9026 + 2e-6, with_donor) == run.history.best


def test_a_merge_that_gained_nothing_is_no_parent_of_paid_calls() -> None:
    run, best, other = two_rewrites(settings={"population": [{"kind": "editor", "model": "m"}]})
    merge = run.add(0.9026 + 1.39e-5, best, other, strategy="function")
    frugal = Frugal()
    assert merge not in frugal._others(run.history, best)
    assert merge not in frugal._spares(run.history, best)


@pytest.mark.parametrize(("values", "wins"), [((2.3, 2.1, 2.5), False), ((4.0, 4.1, 3.9), True)])
def test_a_noisy_merge_must_be_better_beyond_noise_and_stands_in_no_others_way(
    values: tuple[float, ...], wins: bool
) -> None:
    run = RecordedHistory(repeats=2)

    def add(measured: tuple[float, ...], *parents: str, strategy: str = "") -> str:
        commit = run.add(measured[0], *parents, strategy=strategy)
        for repeat, value in enumerate(measured[1:], 1):
            run.evaluate(commit, value, repeat=repeat)
        return commit

    seed = add((1.0, 1.2, 0.8))
    best, other = add((2.0, 2.3, 1.9), seed), add((1.5, 1.7, 1.4), seed)
    assert run.history.best == best
    merge = add(values, best, other, strategy="function")
    assert (run.history.best == merge) == wins
    later = run.add(2.2, best)
    assert contender(run.history) == (None if wins else later)
