"""The walk through the stages of the board: a scripted person says what comes next, looks, and promotes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, cli  # noqa: F401

TASK = "taskboard"
BUILDER = Path(__file__).parent / "taskboard" / "builder.py"
AGENT = ("--agent", f"{BUILDER}:Builder")
SAID = [
    "First store.py: keep status, priority and due, and find by status, text and order.",
    "Now app.py: all of the JSON part, with 400, 404 and 405.",
    "Last pages.py: escape titles, and the form.",
]


@pytest.mark.slow
def test_a_person_guides_from_stage_to_stage(cli: Cli) -> None:  # noqa: F811
    """The scripted agent does what was said last, the person looks, promotes and says what comes next."""

    def evogit(*arguments: str) -> str:
        done = cli(*arguments)
        assert done.code == 0, done.out + done.err
        return done.out

    def go_on(proposals: int) -> float:
        evogit("run", TASK, "-C", "board", "--proposals", str(proposals), "--sandbox", "bubblewrap", *AGENT)
        return float(json.loads(evogit("-C", "board", "show", "best", "--json"))["metrics"]["passed"])

    reached = [go_on(1)]
    for stage, said in enumerate(SAID, 2):
        evogit("-C", "board", "guide", said, "-y")
        reached.append(go_on(stage))
        evogit("-C", "board", "promote", "best", "-m", "a sound stage to build on", "-y")
    assert reached[0] == 0.2
    assert reached == sorted(set(reached)), "each stage is better than the one before"
    assert reached[-1] == 1
    told = evogit("-C", "board", "log", "--decisions", "--json").splitlines()
    kinds = [json.loads(line)["kind"] for line in told]
    assert sorted(kinds) == ["guide"] * 3 + ["promote"] * 3
