"""A run with several objectives: its front in `status` and `report`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evogit.core import Metric
from evogit.testing import RecordedRun

from .conftest import Cli

METRICS = (Metric(name="score", direction="maximize", primary=True), Metric(name="size", direction="minimize"))


@pytest.fixture
def run(tmp_path: Path) -> RecordedRun:
    """A seed (1, 10) and children; (2, 12) (3, 9) and (2, 5) where only the last two are unbeaten."""
    run = RecordedRun(tmp_path / "repo", metrics=METRICS, settings={"selector": "pareto:over=metrics"})
    parents: tuple[str, ...] = ()
    for score, size in ((1.0, 10.0), (2.0, 12.0), (3.0, 9.0), (2.0, 5.0)):
        commit = run.add_files({"main.py": f"{score} {size}".encode()}, *parents)
        run.evaluate(commit, score, metrics={"score": score, "size": size})
        if size < 11:
            run.evaluate(commit, score, split="holdout", metrics={"score": score / 2, "size": size})
        parents = parents or (commit,)
    return run


def test_the_front_is_shown_with_its_holdout_and_hypervolume(cli: Cli, run: RecordedRun) -> None:
    found = cli("status", "--json", cwd=run.repository.path).json["front"]
    assert [each["metrics"] for each in found["members"]] == [{"score": 3.0, "size": 9.0}, {"score": 2.0, "size": 5.0}]
    assert (found["hypervolume"], found["holdout_hypervolume"]) == (6.0, 3.0)
    for command in ("status", "report"):
        said = cli(command, cwd=run.repository.path).out
        assert re.search(r"front +score +size +holdout score +holdout size", said), command
        assert re.search(r"[0-9a-f]{7} +2 +5 +1 +5", said), command
        assert "hypervolume over the seed 6, on the holdout 3" in said, command
