"""The walk through the stages of the board, from a folder with next to nothing: a person looks between them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, cli  # noqa: F401

TASK = "taskboard"
BUILDER = Path(__file__).parent / "taskboard" / "builder.py"
AGENT = ("--agent", f"{BUILDER}:Builder")


@pytest.mark.slow
def test_the_board_is_built_stage_by_stage_while_a_person_may_look(cli: Cli) -> None:  # noqa: F811
    """Nobody comes to the reviews, so it goes on alone."""

    def evogit(*arguments: str) -> str:
        done = cli(*arguments)
        assert done.code == 0, done.out + done.err
        return done.out

    review = ("--review-every", "stage", "--review-minutes", "0.01")
    evogit("run", TASK, "-C", "board", "--proposals", "9", "--sandbox", "bubblewrap", *review, *AGENT)
    status = json.loads(evogit("-C", "board", "status", "--json"))
    assert [each["number"] for each in status["stages"]] == [1, 2, 3, 4]
    assert not status["waits_for_review"]
    told = json.loads(evogit("-C", "board", "report", "--json"))
    assert [each["what"] for each in told["interruptions"]] == ["review"] * 3
    reached = [json.loads(evogit("-C", "board", "show", each["best"], "--json")) for each in status["stages"]]
    passed = [each["metrics"]["passed"] for each in reached]
    assert passed[0] == 0, "the seed does nothing"
    assert passed == sorted(set(passed)), "each stage is better than the one before"
    best = json.loads(evogit("-C", "board", "show", "best", "--json"))
    assert (best["metrics"]["passed"], status["best"]["holdout"]["passed"]) == (1, 1)
    page = evogit("-C", "board", "report")
    assert all(f"{number} of 4" in page for number in (1, 2, 3, 4))
