"""Skeleton, lanes and decisions on histories of known and of random shape."""

from __future__ import annotations

import copy
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evogit.core import NotFoundError, RefusedError
from evogit.events import Decision, Entry
from evogit.history import History
from evogit.history.state import standing
from evogit.repository import Repository
from evogit.review import agents, decide, effect, most_telling, open_run, resolve, rows
from evogit.review.graph import Way, lanes, skeleton
from evogit.testing import RecordedHistory, RecordedRun, run_started


def grown(seed: int, size: int) -> History:
    """A random phylogeny, every candidate evaluated."""
    rng, run, known = random.Random(seed), RecordedHistory("toy", agents=("a1",)), list[str]()
    for number in range(size):
        parents = tuple(rng.sample(known, min(len(known), rng.choice([1, 1, 2]))))
        others = sorted(set(known) - set(parents))
        shown = tuple(rng.sample(others, min(len(others), rng.choice([0, 0, 1, 2]))))
        named = {"candidate": f"{number:040x}", "agent": "a1", "shown": shown, "inspirations": shown}
        known.append(run.add(rng.random(), *parents, **named))
    return run.history


histories = st.builds(grown, st.integers(0, 10**6), st.integers(1, 40))


@settings(deadline=None)
@given(histories, st.integers(2, 40))
def test_no_candidate_is_lost_when_some_are_folded(history: History, limit: int) -> None:
    everything = {candidate.commit for candidate in history.phylogeny}
    for shown in (everything, skeleton(history), most_telling(history, everything, limit)):
        drawn = rows(history, shown)
        assert len(drawn) == len(shown)
        assert len(drawn) + sum(row.folded for row in drawn) == len(everything)
        assert {history.seed, history.best} <= shown
    assert all(set(history.origins(each)) <= skeleton(history) for each in skeleton(history))


@settings(deadline=None)
@given(histories, st.integers(2, 40))
def test_every_line_of_the_graph_leads_somewhere(history: History, limit: int) -> None:
    drawn = rows(history, most_telling(history, skeleton(history), limit))
    grid = list(lanes(drawn, history.best))
    assert list(lanes(drawn, history.best, 3)) == [cells[:3] for cells in grid]
    assert [sum(cell.node for cell in cells) for cells in grid] == [1] * len(drawn)
    for above, below in zip(grid, [*grid[1:], []], strict=True):
        downs = {i for i, cell in enumerate(above) if cell.ways & Way.DOWN}
        assert downs == {i for i, cell in enumerate(below) if cell.ways & Way.UP}
    for cells in grid:
        rights = {i + 1 for i, cell in enumerate(cells) if cell.ways & Way.RIGHT}
        assert rights == {i for i, cell in enumerate(cells) if cell.ways & Way.LEFT}


@settings(deadline=None)
@given(histories)
def test_the_best_and_its_first_parents_keep_the_leftmost_lane(history: History) -> None:
    drawn = rows(history, {candidate.commit for candidate in history.phylogeny})
    trunk = {candidate.commit for candidate in history.phylogeny.lineage(history.best or "")}
    columns = [next(i for i, cell in enumerate(cells) if cell.node) for cells in lanes(drawn, history.best)]
    assert {column for row, column in zip(drawn, columns, strict=True) if row.candidate.commit in trunk} == {0}


def test_looking_at_an_effect_changes_nothing() -> None:
    history = grown(3, 30)
    before = copy.deepcopy(vars(history) | {"phylogeny": None})
    change = effect(history, Decision(kind="prune", by="me", candidates=(history.best or "",), subtree=True))
    assert history.best in change.pruned
    assert change.best[0] == history.best != change.best[1]
    assert vars(history) | {"phylogeny": None} == before


def test_revisions_are_names_agents_and_ids() -> None:
    history = grown(1, 12)
    later = run_started(engine="f", agents=("a10", "a2", "b"))
    history.apply(Entry(id="x", host="h", seq=99, time=0, event=later))
    assert agents(history) == ["a1", "a2", "a10", "b"]
    assert resolve(history, "best").commit == history.best
    assert resolve(history, "a10").commit == resolve(history, "seed").commit == history.seed
    with pytest.raises(NotFoundError, match="several|names 12 candidates"):
        resolve(history, "0000")


def test_a_decision_that_somebody_made_meanwhile_is_refused(tmp_path: Path) -> None:
    recorded = RecordedRun(tmp_path / "repo", "toy")
    child = recorded.add(2.0, recorded.add(1.0))
    run = open_run(recorded.repository)
    prune = Decision(kind="prune", by="me", candidates=(child,))
    mine = open_run(Repository.open(tmp_path / "repo"))
    effect(mine.history, prune)
    entry = decide(run, prune)
    with pytest.raises(RefusedError, match="pruned already"):
        decide(mine, prune)
    decide(mine, Decision(kind="undo", by="me", undoes=entry.id))
    with pytest.raises(RefusedError, match="undone already"):
        decide(run, Decision(kind="undo", by="me", undoes=entry.id))
    assert [each.event.kind for each in standing(run.history.decisions)] == ["undo"]  # type: ignore[union-attr]
    assert run.history.pruned == set()
