"""`evogit judge` on a run that waits for people."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from evogit.core import Evaluation, Metric
from evogit.events import Evaluated, Proposed, RunStarted
from evogit.history import History
from evogit.repository import Repository

from .conftest import Cli, Story
from .test_run import Screen

TOML = """\
name = "short"
goal = "Say \\u001b[31mhello."
editable = ["*.py"]
[evaluator]
kind = "judge"
criteria = "The shorter one is better."
"""


@pytest.fixture
def ids(tmp_path: Path) -> list[str]:
    """A task in `short`, and in `repo` a run of it with the seed and three candidates; their ids."""
    (tmp_path / "short" / "seed").mkdir(parents=True)
    (tmp_path / "short" / "task.toml").write_text(TOML)
    (tmp_path / "short" / "seed" / "main.py").write_text("A = 1\n")
    repository = Repository.create(tmp_path / "repo")
    journal = repository.journal("short", History("short").apply)
    metrics = (Metric(name="strength", direction="maximize", primary=True),)
    known: dict[str, Any] = dict.fromkeys(("task_digest", "evaluator", "provider", "image"), "x")
    known["population"] = "refs/heads/evogit/short/"
    known |= {"metrics": metrics, "agents": ("a1",), "editable": ("*.py",)}
    journal.append(RunStarted(engine="e", task="short", split="train", judged="pairs", **known))
    found: list[str] = []
    for number in range(4):
        text = "A = 1\n" + "".join(f"# \x1b[2J{number} {line}\n" for line in range(number))
        tree = repository.trees.write(None, {"main.py": text.encode()})
        parents = tuple(found[:1])
        commit = repository.commit(tree, parents, author="a1", time=number, title=f"longer by {number}", trailers={})
        operator: Any = "mutation" if parents else "seed"
        born: dict[str, Any] = {"candidate": commit, "tree": tree, "parents": parents, "agent": "a1"}
        journal.append(Proposed(engine="e", move=number, operator=operator, title=f"longer by {number}", **born))
        judged = Evaluation(status="ok", metrics={"strength": 0.0}, judged="pairs")
        journal.append(Evaluated(candidate=commit, evaluation=judged))
        found.append(commit)
    return found


def test_a_script_says_who_wins_and_the_ranking_follows(cli: Cli, ids: list[str]) -> None:
    for worse in ids[1:]:
        done = cli("-C", "repo", "judge", "seed", worse[:9], "--winner", "a", "-m", "short\x1b[1m", "--json")
        assert (done.json["a"], done.json["b"], done.json["winner"], done.json["by"]) == (ids[0], worse, "a", "person")
    assert cli("-C", "repo", "judge", ids[1], ids[3], "--winner", "a").code == 0
    status = cli("-C", "repo", "judge", "--list", "--json").json
    assert (status["candidates"][0]["commit"], status["candidates"][0]["verdicts"]) == (ids[0], 3)
    assert status["candidates"][0]["margin"] > 1
    (judge,) = status["judges"]
    assert (judge["by"], judge["verdicts"], judge["agreed"]) == ("person", 4, 4)
    shown = cli("-C", "repo", "judge", "--list").out
    assert re.search(rf"{ids[0][:7]} +\d\.\d\d ± \d\.\d\d +3 verdicts", shown)
    assert "100.0 %" in shown
    told = cli("-C", "repo", "status", "--json").out
    assert ids[0] in told


def test_the_next_pair_comes_as_data(cli: Cli, ids: list[str]) -> None:
    told = cli("-C", "repo", "judge", "--task", "short", "--json").json
    assert {told["a"]["commit"], told["b"]["commit"]} <= set(ids)
    assert told["criteria"] == "The shorter one is better."
    assert any(told[side]["patch"].startswith("diff --git") for side in "ab")


def test_what_makes_no_sense_is_refused(cli: Cli, ids: list[str], tmp_path: Path) -> None:
    story = Story(tmp_path / "repo")
    story.add(1.0)
    for arguments, code, words in (
        (("seed", "seed", "--winner", "a"), 2, "two candidates"),
        (("seed", ids[1]), 2, "expected both"),
        (("--winner", "a"), 2, "expected both"),
        (("-m", "shorter"), 2, "expected both"),
        (("seed", "0000", "--winner", "a"), 3, "0000"),
        (("--list", "-n", "3"), 2, "--list alone"),
        (("--task", "short"), 2, "expected a terminal"),
    ):
        done = cli("-C", "repo", "judge", *arguments, "--name", "short")
        assert (done.code, words in done.err) == (code, True), done.err
    assert "here: evogit judge --task FOLDER" in cli("judge", "--name", "short", cwd=tmp_path / "repo").err
    assert "judge --name short" in cli("-C", "repo", "status", "--name", "short").out
    done = cli("-C", "repo", "judge", "--name", "toy")
    assert (done.code, "ranked by score" in done.err) == (4, True), done.err


@pytest.mark.slow
def test_a_person_is_shown_pairs_and_answers(tmp_path: Path, ids: list[str], cli: Cli) -> None:
    screen = Screen("-C", "repo", "judge", "--task", "short", cwd=tmp_path, PAGER="cat")
    for answer in ("maybe\n", " \n", "1 it is shorter\n", "s\n", "=\n", "2\n", "q\n"):
        screen.until("q (quit)")
        screen.text = ""
        screen.press(answer)
    assert screen.end() == 0, screen.text
    assert "3 verdicts kept" in screen.text
    (judge,) = cli("-C", "repo", "judge", "--list", "--json").json["judges"]
    assert (judge["verdicts"], judge["decided"]) == (3, 2)


@pytest.mark.slow
def test_foreign_text_is_harmless_and_a_person_may_hang_up(tmp_path: Path, ids: list[str], cli: Cli) -> None:
    screen = Screen("-C", "repo", "judge", "--task", "short", "-n", "1", cwd=tmp_path, PAGER="cat")
    screen.until("q (quit)")
    assert "\x1b[2J" not in screen.text
    assert r"Say \x1b[31mhello." in screen.text
    assert "The shorter one is better." in screen.text
    screen.interrupt()
    screen.end()
    assert cli("-C", "repo", "judge", "--list", "--json").json["judges"] == []
