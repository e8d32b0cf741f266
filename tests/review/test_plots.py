from __future__ import annotations

from pathlib import Path

import pytest

from evogit.core import UsageError
from evogit.history.context import StoredRun
from evogit.review.plots import plot
from evogit.testing import RecordedRun


@pytest.mark.slow
def test_every_figure_names_what_it_shows(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for name in ("one", "two"):
        run = RecordedRun(tmp_path / "repository", name)
        seed = run.add(1.0, title="the beginning")
        child = run.add(2.0, seed, title="the idea")
        for value in (2.1, 2.2, 2.3):
            run.add(value, child, agent="a2")
    runs = [StoredRun.open(run.repository, name).history for name in ("one", "two")]
    assert b"a2" in plot(runs[:1], "lineage", "svg")
    with pytest.raises(UsageError):
        plot(runs, "lineage", "svg")
    both = plot(runs, "best", "svg")
    assert b"one" in both
    assert b"two" in both
    assert plot(runs, "best", "pdf").startswith(b"%PDF")
