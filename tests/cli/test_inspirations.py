"""The family tree of a run that a model wrote: it copies from a sibling that its brief shows, and all who ask know."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import write_task

from .conftest import Cli

PROGRAM = "def value(x):\n    return 0.0\n"
FIRST = '''\
def approach(start, goal, share):
    """Come nearer to a goal by a share of the distance, some hundred times."""
    for repeat in range(HUNDREDS_OF_TIMES):
        start = start + (goal - start) * share
    return start


HUNDREDS_OF_TIMES = 300


def value(x):
    return approach(0.0, 12.0, 0.5)
'''
OTHER = "def value(x):\n    return sum(1.0 for step in range(5))\n"
BETTER = (
    FIRST.replace("12.0, 0.5", "16.0, damped(share=0.5)")
    + '''

def damped(share):
    """A share that does not go beyond the goal, whatever was asked for."""
    return min(max(share, 0.001), 0.999)
'''
)
BEST = BETTER.replace("16.0", "19.0") + "\n\nassert value(0) > 18, 'expected that it comes near'\n"


def reply(title: str, program: str) -> str:
    return f"%%\nTITLE: {title}\n<<<<<<< WRITE program.py\n{program}>>>>>>> END\n"


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Replies to four briefs, each with the seed as parent and the siblings' changes in it."""
    folder = tmp_path_factory.mktemp("asked")
    write_task(folder / "task", program=PROGRAM)
    replies = (("approach", FIRST), ("sum up", OTHER), ("nearer", BETTER), ("nearest", BEST))
    (folder / "model.md").write_text("".join(reply(*each) for each in replies))
    return folder


@pytest.fixture
def run(asked: Path, cli: Cli) -> Any:
    command = ["run", asked / "task", "--agent", f"editor@script:{asked / 'model.md'}", "--selector", "best-of-n"]
    done = cli(*command, "--proposals", "4", "--deterministic", "--yes", "--name", "r", "--json")
    assert done.code == 0, done.err
    return done.json


def test_all_who_ask_for_the_family_know_what_was_copied(cli: Cli, run: Any, tmp_path: Path) -> None:
    repository = Path(run["repository"])
    at = ("-C", repository)
    by_title = {each["title"]: each["commit"] for each in cli(*at, "log", "--json").lines}
    first, better, best = (by_title[each] for each in ("approach", "nearer", "nearest"))

    shown = {name: cli(*at, "show", by_title[name], "--json").json for name in by_title}
    assert [shown[each]["inspirations"] for each in ("approach", "sum up")] == [[], []]
    assert shown["nearer"]["inspirations"] == [first]
    assert shown["nearest"]["shown"] == [better]  # the best so far
    assert shown["nearest"]["inspirations"] == [better]

    steps = cli(*at, "report", "--json").json["steps"]
    assert [(each["title"], each["gain"]) for each in steps[1:]] == [("approach", 12), ("nearer", 4), ("nearest", 3)]
    assert "nearest (with lines of" in cli(*at, "report").out

    edges = cli(*at, "graph", "--all", "--json").json["edges"]
    assert {"child": better, "parent": first, "index": 1, "kind": "inspiration"} in edges
    drawn = cli(*at, "graph").out
    assert "┄╮" in drawn
    assert first[:7] in drawn
    assert "lines of" in cli(*at, "show", best).out

    blamed = cli(*at, "blame", "--json").json
    assert [(each["commit"], each["gain"]) for each in blamed["candidates"][1:]] == [
        (first, 12),
        (better, 4),
        (best, 3),
    ]
    by_text = {line["text"].strip(): line["commit"] for line in blamed["files"]["program.py"]}
    assert by_text["start = start + (goal - start) * share"] == first
    assert by_text["return min(max(share, 0.001), 0.999)"] == better
    assert by_text["return approach(0.0, 19.0, damped(share=0.5))"] == best
    assert f"{first[:7]}  +12.000" in cli(*at, "blame", "best", "program.py").out

    message = subprocess.run(
        ["git", "-C", repository, "log", "-1", "--format=%(trailers)", best], capture_output=True, text=True, check=True
    ).stdout
    assert f"Evogit-Shown: {better}" in message
    assert f"Evogit-Inspiration: {better}" in message
    assert by_title["sum up"] not in message
