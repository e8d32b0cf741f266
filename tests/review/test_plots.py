from __future__ import annotations

from pathlib import Path

import pytest

from evogit.core import UsageError
from evogit.review.plots import PlottedRun, lineages, plot
from evogit.testing import RecordedHistory, RecordedRun


def test_lineages_divide_a_run_where_it_divides_the_most_evenly() -> None:
    story = RecordedHistory()
    seed = story.add(1.0)
    left = story.add(1.1, seed)
    lefts = [story.add(1.2, left) for _ in range(4)]
    right = story.add(1.3, left)
    rights = [story.add(1.4, right) for _ in range(6)]
    story.add("crashed", seed)
    found = lineages(story.history.phylogeny, 2)
    assert {found[each] for each in [seed, left, *lefts]} == {seed}
    assert {found[each] for each in [right, *rights]} == {right}
    assert len(set(lineages(story.history.phylogeny, 8).values())) <= 4


@pytest.mark.slow
def test_every_figure_names_what_it_shows(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for name in ("one", "two"):
        run = RecordedRun(tmp_path / "repository", name)
        seed = run.add(1.0, title="the beginning")
        child = run.add(2.0, seed, title="the idea")
        for value in (2.1, 2.2, 2.3):
            run.add(value, child, agent="a2")
    runs = [PlottedRun(run.repository, name) for name in ("one", "two")]
    for what in ("lineage", "shares", "operators"):
        drawn = plot(runs[:1], what, "evaluations", "svg")
        assert drawn.startswith(b"<?xml")
        with pytest.raises(UsageError, match="expected one run"):
            plot(runs, what, "evaluations", "svg")
    assert b"mean of 2 runs" in plot(runs, "best", "evaluations", "svg", mean=True)
    assert plot(runs, "best", "seconds", "pdf").startswith(b"%PDF")
