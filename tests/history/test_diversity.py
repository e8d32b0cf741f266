"""How many lines the heads of a population are worth."""

from __future__ import annotations

import pytest

from evogit.testing import RecordedHistory


def grown(run: RecordedHistory, parent: str, steps: int) -> str:
    for _ in range(steps):
        parent = run.add(1.0, parent)
    return parent


@pytest.fixture
def run() -> RecordedHistory:
    run = RecordedHistory()
    run.add(0.0)
    return run


def test_heads_that_share_nothing_are_worth_their_number_and_equal_ones_one(run: RecordedHistory) -> None:
    graph, seed = run.history.phylogeny, run.history.seed or ""
    apart = [grown(run, seed, steps) for steps in (3, 3, 3, 3)]
    assert graph.effective_lines(apart) == pytest.approx(4.0)
    assert graph.effective_lines([apart[0]] * 4) == pytest.approx(1.0)
    assert graph.effective_lines([seed] * 4) == 1.0
    assert not graph.is_one_line(apart)


def test_heads_that_parted_late_are_worth_little_more_than_one(run: RecordedHistory) -> None:
    graph, trunk = run.history.phylogeny, grown(run, run.history.seed or "", 8)
    late = [grown(run, trunk, 2) for _ in range(4)]
    assert graph.effective_lines(late) == pytest.approx(1.32, abs=0.01)  # exp(2 ln 4 / 10)
    below = [trunk, late[0], late[0], late[0]]
    assert 1.0 < graph.effective_lines(below) < 1.1
    assert graph.is_one_line(below)
    assert not graph.is_one_line(late)
