"""`evogit ideas` and the other faces of the ideas of a run that a scripted model made."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import write_task

from .conftest import Cli

FAMILIES = ("annealing", "gradient", "grid", "simplex", "crossover", "restarts", "cache", "schedule", "polish")
OBJECTS = ("points", "edges", "rows", "circles")
WAYS = ("Sort the", "Forget distant", "Move few", "Swap pairs of", "Shake all", "Freeze most", "Copy the best", "Weigh")
CALLS, REPEATED = 30, {12: 3, 18: 5, 25: 7}
"""Calls of the run, and those that repeat an earlier one's idea; the last of them says why it is different."""

PLAIN = ("--selector", "frugal:tactics=no,merge=no")  # every move is a call that makes a change

pytestmark = pytest.mark.slow


def title(number: int) -> str:
    """A title of the model, unlike any other."""
    return f"{WAYS[number % 8]} {OBJECTS[number // 8]} before each search"


def reply(number: int) -> str:
    """What the model says in a call."""
    idea = REPEATED.get(number, number)
    value = 10 - 1 / (number + 1) if number % 6 == 0 else number / 10
    body = "raise OSError" if number == 4 else f"return {value} + 0 * {number}"
    lines = [f"It stops in call {number}.\n\nTITLE: {title(idea)}", f"FAMILY: {FAMILIES[idea % len(FAMILIES)]}"]
    lines += ["DIFFERS: with another schedule"] * (number == 25)
    program = f"# {number}\nN{number} = None\ndef value(x):\n    {body}\n"
    return "%%\n" + "\n".join(lines) + f"\n<<<<<<< WRITE program.py\n{program}>>>>>>> END\n"


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_task(tmp_path_factory.mktemp("ideas") / "task", program="def value(x):\n    return 0.0\n")
    (folder.parent / "model.md").write_text("".join(map(reply, range(CALLS))))
    return folder


def test_a_run_keeps_its_ideas_and_each_brief_names_all_families(cli: Cli, task: Path, tmp_path: Path) -> None:
    agent = f"editor@script:{task.parent / 'model.md'}"
    run = cli("-C", tmp_path / "r", "run", task, "--agent", agent, "--proposals", str(CALLS), *PLAIN, "--yes", "--json")
    assert run.code == 0, run.err
    at = ("-C", tmp_path / "r")
    told: dict[str, Any] = cli(*at, "ideas", "--json").json
    assert (told["number"], told["families"], told["repeats"]) == (CALLS - len(REPEATED), len(FAMILIES), 2)
    ideas = {idea["title"]: idea for idea in told["ideas"]}
    assert [(ideas[title(number)]["tries"], ideas[title(number)]["repeats"]) for number in (3, 5, 7, 8)] == [
        *((2, 1), (2, 1), (2, 0), (1, 0))
    ]
    first = ideas[title(0)]
    assert (first["outcome"], first["certain"], first["reason"]) == ("better", True, "It stops in call 0.")
    assert ideas[title(4)]["outcome"].startswith("failed: crashed")
    assert cli(*at, "status", "--json").json["ideas"] == {key: told[key] for key in ("number", "families", "repeats")}

    assert re.search(rf"schedule +-?[0-9.]+ +[+-][0-9.]+ +2 +a1 +[0-9a-f]{{7}} +{title(7)}", cli(*at, "ideas").out)
    assert "what models tried" in cli(*at, "report").out
    assert len(cli(*at, "report", "--json").json["tried"]) == told["number"]

    brief = cli(*at, "show", "--brief", "--task", task, "--json").json
    section = next(each for each in brief["sections"] if each.startswith("## What this run has tried"))
    assert all(f"\n{family}" in section for family in FAMILIES)
    assert brief["tokens"]["What this run has tried"] <= 850
    replies = cli(*at, "log", "--json").lines
    prompt = cli(*at, "show", replies[5]["commit"], "--file", "prompt.md").out
    assert all(f"\n{family}" in prompt for family in FAMILIES), "of call 24"


def test_a_run_without_models_has_no_ideas(cli: Cli, task: Path, tmp_path: Path) -> None:
    at = ("-C", tmp_path / "r")
    assert cli(*at, "run", task, "--agent", "mutator:1", "--evaluations", "4", "--yes", "--json").code == 0
    assert cli(*at, "ideas", "--json").json["ideas"] == []
    assert cli(*at, "ideas").out == "no ideas yet: they come from agents that ask a model\n"
