"""`evogit show --brief` shows what an editor would be told, without a model."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from evogit.config import Task
from evogit.events import Decision
from tests.conftest import TOML, write_task
from tests.own import Own

from .conftest import Cli, Small, Story


def test_the_brief_of_the_best_and_its_tokens_by_section(cli: Cli, small: Small, tiny: Callable[..., Task]) -> None:
    done = cli("show", "--brief", "--task", tiny().folder, cwd=small.folder)
    assert done.code == 0
    assert "<<<<<<< SEARCH path/of/file" in done.out
    assert "## Goal\n\nBring value(x) to 20.\n" in done.out
    assert "corner circles first" in done.out
    assert "1.9" not in done.out  # of the holdout
    assert "Rules" in done.err
    assert "tokens, about" in done.err.splitlines()[-1]
    coder = cli("show", "--brief", "--agent", "coder", "--task", tiny("again").folder, cwd=small.folder)
    assert "<<<<<<< RUN a shell command" in coder.out
    assert "## Goal\n\nBring value(x) to 20.\n" in coder.out


def test_as_data_for_any_candidate(cli: Cli, small: Small, tiny: Callable[..., Task]) -> None:
    words = ("show", "--brief", small.left[:8], "--task", tiny().folder, "--json")
    told = cli(*words, cwd=small.folder).json
    assert told["commit"] == small.left
    assert {"Rules", "Goal", "Code", "Scores"} <= told["tokens"].keys()


def test_the_brief_is_harmless_on_a_terminal(cli: Cli, tmp_path: Path, tiny: Callable[..., Task]) -> None:
    story = Story(tmp_path / "repo")
    story.add(1.0, title="\x1b[31mred", files={"program.py": b"x = '\x1b]0;owned\x07'\r\n"})
    story.journal.append(Decision(kind="guide", by="ada", reason="Say \x1b[2J nothing."))
    done = cli("show", "--brief", "seed", "--task", tiny().folder, cwd=story.folder)
    assert "x = '\\x1b]0;owned\\x07'" in done.out
    assert "\x1b" not in done.out + done.err


def test_before_the_first_run_it_is_about_the_commit_at_head(cli: Cli, tmp_path: Path) -> None:
    folder = write_task(tmp_path / "own")
    (folder / "task.toml").rename(folder / "evogit.toml")
    (folder / "seed" / "program.py").rename(folder / "program.py")
    for command in ("init -q", "add .", "-c user.name=ada -c user.email=a@b.c commit -qm first"):
        subprocess.run(["git", *command.split()], cwd=folder, check=True)
    refs = subprocess.run(["git", "for-each-ref"], cwd=folder, capture_output=True, check=True).stdout
    done = cli("show", "--brief", cwd=folder)
    assert "The candidate has not been evaluated yet." in done.out
    assert "def value(x):" in done.out
    assert "def evaluate" not in done.out
    assert subprocess.run(["git", "for-each-ref"], cwd=folder, capture_output=True, check=True).stdout == refs


def test_a_repository_without_its_evogit_toml_is_told_to_put_it_back(cli: Cli, own: Own) -> None:
    (own.folder / "evogit.toml").unlink()
    for command in (("land", "seed"), ("show", "--brief"), ("run", "--evaluations", "1")):
        done = cli(*command, cwd=own.folder)
        assert done.code == 3, done.err
        assert "own/evogit.toml, which says how the run own is evaluated; put it back" in done.err


ASKS = """\
from evogit import Case

def evaluate(program, split):
    for name, x in {"smoke": [("open", 111)], "train": [("open", 222), ("hidden", 333), ("late", 444)]}.get(split, ()):
        yield Case(name, score=1.0).answer(program.call("program:value", [x]).value)
    if split == "holdout":
        yield Case("open", score=1.0).answer(program.call("program:value", [555]).value)
"""
HOARDS = "SEEN = []\n\ndef value(x):\n    SEEN.append(x)\n    print('saw', SEEN)\n    return f'saw {SEEN}'\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("public", "shown"),
    [("false", set()), ('["open", "late"]', {"111", "222"}), ("true", {"111", "222", "333", "444"})],
)
def test_a_candidate_that_copies_its_inputs_gets_only_public_ones_into_a_brief(
    cli: Cli, tmp_path: Path, public: str, shown: set[str]
) -> None:
    toml = TOML.replace("[sandbox]", f"public = {public}\n[sandbox]").replace("gate.smoke", "# ")
    task = write_task(tmp_path / "task", evaluate=ASKS, program=HOARDS, toml=toml)
    at = ("-C", tmp_path / "r")
    run = cli(*at, "run", task, "--agent", "mutator:1", "--evaluations", "1", "--yes", "--json")
    assert run.code == 0, run.err
    assert run.json["best"]["holdout"] == {"score": 1.0}
    for agent in ("editor", "coder", "program"):
        brief = cli(*at, "show", "--brief", "--agent", agent, "--task", task).out
        assert {number for number in ("111", "222", "333", "444", "555") if number in brief} == shown
        assert ("answered: saw [" in brief) is bool(shown)
