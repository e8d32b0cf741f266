from __future__ import annotations

from pathlib import Path

import pytest

from evogit.core import Spent
from evogit.history import History, snapshot
from evogit.history.context import StoredRun
from evogit.history.pages import Pages
from evogit.repository import Repository
from evogit.testing import RecordedRun
from tests.history.test_snapshot import told


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of three values, of which two are decoded at a time, and no more than fifteen values on none."""
    monkeypatch.setattr("evogit.history.pages.PAGE", 3)
    monkeypatch.setattr("evogit.history.pages.MOST_FRESH", 3)
    monkeypatch.setattr("evogit.history.pages.MOST_OPEN", 2)


def lived(repository: Repository) -> RecordedRun:
    """A run of fifty candidates, some of which failed, some evaluated again on another split long after."""
    run = RecordedRun(repository, "r")
    made = [run.propose()]
    run.evaluate(made[0], 1.0)
    for number in range(1, 50):
        run.append(Spent(engine="e", move=number, agent="a1", model="m", prompt=number, dollars=0.5))
        made.append(run.propose(made[number // 2], move=number))
        run.evaluate(made[-1], "crashed" if number % 4 == 0 else number / 3)
        if number % 5 == 0:
            run.evaluate(made[number // 3], float(number), split="holdout")
    return run


def read(repository: Repository) -> History:
    history = History("r")
    repository.journal("r", history.apply)
    return history


def test_what_came_long_ago_is_kept_as_columns_and_says_the_same(tmp_path: Path, small: None) -> None:
    run = lived(Repository.create(tmp_path / "r"))
    again = read(run.repository)
    for history in (run.history, again):
        assert [each.commit for each in history.phylogeny] == list(history.phylogeny.ids)
        assert history.evaluation(history.phylogeny.ids[1], "holdout") is not None, "though it came after the page"
        assert history.course.moments.fresh < len(history.course.moments) == 50
        assert history.authors.efforts.fresh < len(history.authors.efforts) == 49
        assert all(effort.done for effort in history.authors.efforts.values())
    assert told(again) == told(run.history)


def test_pages_in_memory_and_in_a_snapshot_go_on_together(tmp_path: Path, small: None) -> None:
    run = lived(Repository.create(tmp_path / "r"))
    stored = StoredRun.open(run.repository, "r")
    for turn in range(3):
        assert (position := stored.journal.position)
        snapshot.save(run.repository, stored.history, position)
        run = RecordedRun(run.repository, "r")
        child = run.propose(run.history.phylogeny.ids[turn])
        run.evaluate(child, 100.0 + turn)
        run.evaluate(run.history.phylogeny.ids[turn + 1], 7.0, split="holdout")
        stored = StoredRun.open(run.repository, "r")
        assert told(stored.history) == told(read(run.repository))


def test_of_decoded_pages_only_the_last_stay(tmp_path: Path, small: None) -> None:
    history = lived(Repository.create(tmp_path / "r")).history
    pages: Pages[str, object] = history.course.moments
    first = pages[history.phylogeny.ids[0]]
    assert pages[history.phylogeny.ids[0]] is first
    list(pages.values())
    assert pages[history.phylogeny.ids[0]] is not first
    assert pages[history.phylogeny.ids[0]] == first
