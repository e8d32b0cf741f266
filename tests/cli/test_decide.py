"""Promote, prune, undo: plans, questions, reasons, and that nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from evogit.repository import Repository
from evogit.review import open_run
from evogit.testing import RecordedRun

from .conftest import Cli, Small


def pruned(folder: Path) -> set[str]:
    history = open_run(Repository.open(folder)).history
    return history.pruned


def test_promote_records_who_and_why_and_prints_its_undo(cli: Cli, small: Small) -> None:
    done = cli("-C", "repo", "promote", "a2", "-m", "simple", "--yes", "--json")
    decision = done.json
    assert decision["candidates"] == [small.right]
    assert (decision["kind"], decision["reason"], decision["in_force"]) == ("promote", "simple", True)
    assert f"evogit -C repo undo {decision['decision'][:7]}" in done.err
    assert [line["commit"] for line in cli("-C", "repo", "log", "--json").lines if line["promoted"]] == [small.right]


def test_prune_with_subtree_and_its_undo_restore_the_same_state(cli: Cli, small: Small) -> None:
    before = cli("-C", "repo", "status", "--json").json
    done = cli("-C", "repo", "prune", small.step, "--all", "-m", "unsafe", "-y")
    assert "5 candidates: no longer a parent" in done.err
    assert "the best becomes" in done.err
    assert pruned(small.folder) == {small.step, small.left, small.right, small.dead, small.merge}
    assert cli("-C", "repo", "status", "--json").json["best"]["commit"] == small.seed
    assert cli("-C", "repo", "undo", "-y").code == 0
    assert cli("-C", "repo", "status", "--json").json == before


def test_prune_names_carriers_of_the_code_and_prunes_them_if_asked(cli: Cli, tmp_path: Path) -> None:
    run = RecordedRun(tmp_path / "repo", "toy")
    seed = run.add_files({"a.py": b"VALUE = 1\n"}, value=1.0)
    bad = run.add_files({"a.py": b"def cheat():\n    return 99\n"}, seed, value=2.0)
    copy = run.add_files({"a.py": b"VALUE = 2\n\n\ndef cheat():\n  return 99\n"}, seed, value=3.0, shown=(bad,))
    chance = run.add_files({"b.py": b"def cheat():\n    return 99\n"}, seed, value=1.5)
    done = cli("-C", "repo", "prune", bad, "--all", "-m", "no", "--dry-run")
    assert "1 other candidate carries its code, the best among them" in done.err
    assert "--carriers" in done.err
    assert chance[:7] in done.err
    done = cli("-C", "repo", "prune", bad, "--all", "--carriers", "-m", "no", "-y", "--json")
    assert done.json["carriers"] == [copy]
    assert done.json["changes"]["best"] == {"from": copy, "to": chance}
    assert pruned(tmp_path / "repo") == {bad, copy}
    assert f"as it carries code of {bad[:7]}: no" in cli("-C", "repo", "show", copy).out
    assert cli("-C", "repo", "undo", "-y").code == 0
    assert pruned(tmp_path / "repo") == set()


def test_undoing_an_undo_decides_again(cli: Cli, small: Small) -> None:
    cli("-C", "repo", "prune", small.dead, "-m", "no", "-y")
    undo = cli("-C", "repo", "undo", "-y", "--json").json
    assert pruned(small.folder) == set()
    assert cli("-C", "repo", "undo", undo["decision"][:7], "-y").code == 0
    assert pruned(small.folder) == {small.dead}
    listed = cli("-C", "repo", "log", "--decisions", "--json").lines
    assert [(each["kind"], each["in_force"]) for each in listed] == [("undo", True), ("undo", False), ("prune", True)]


def test_a_dry_run_shows_the_plan_and_changes_nothing(cli: Cli, small: Small) -> None:
    done = cli("-C", "repo", "prune", "best", "-m", "no", "--dry-run")
    assert done.code == 0
    assert f"the best becomes {small.left[:7]}" in done.err
    assert f"a1 goes on from {small.left[:7]}" in done.err
    plan = cli("-C", "repo", "prune", "best", "-m", "no", "--dry-run", "--json").json
    assert (plan["kind"], plan["decision"], plan["in_force"]) == ("prune", None, False)
    assert plan["changes"]["pruned"] == [small.merge]
    assert plan["changes"]["best"] == {"from": small.merge, "to": small.left}
    assert plan["changes"]["moved"] == [{"agent": "a1", "from": small.merge, "to": small.left}]
    assert cli("-C", "repo", "log", "--decisions", "--json").out == ""


@pytest.mark.parametrize(
    ("command", "code", "sentence"),
    [
        ("prune seed -m x -y", 4, "is the seed"),
        ("prune beef -m x -y", 3, "expected a candidate's id"),
        ("prune best -m x", 4, "add --yes"),
        ("prune best -y", 2, "Missing option '-m'"),
        ("prune best -y -m \x1b", 2, "expected a reason"),
        ("promote {fail} -m x -y", 4, "no valid evaluation"),
        ("undo -y", 3, "no decision to undo"),
        ("undo abcd -y", 3, "expected the id of one decision"),
    ],
)
def test_what_cannot_be_decided_is_refused(cli: Cli, small: Small, command: str, code: int, sentence: str) -> None:
    words = [word.format(fail=small.fail) for word in command.split(" ")]
    done = cli("-C", "repo", *words)
    assert done.code == code
    assert sentence in done.err
    assert pruned(small.folder) == set()


def test_deciding_twice_is_refused(cli: Cli, small: Small) -> None:
    for words, sentence in (
        (["promote", "a2", "-m", "x"], "is promoted already"),
        (["prune", small.dead, "-m", "x"], "is pruned already"),
    ):
        assert cli("-C", "repo", *words, "-y").code == 0
        done = cli("-C", "repo", *words, "-y")
        assert done.code == 4
        assert sentence in done.err
    assert "undo that first" in cli("-C", "repo", "promote", small.dead, "-m", "x", "-y").err


def test_the_decision_is_signed_with_gits_user_name(cli: Cli, small: Small) -> None:
    config = small.folder / ".git" / "config"
    config.write_text(config.read_text() + "[user]\n\tname = Ada Lovelace\n")
    cli("-C", "repo", "promote", "a2", "-m", "simple", "-y")
    assert cli("-C", "repo", "log", "--decisions", "--json").lines[0]["by"] == "Ada Lovelace"
    assert "promote by Ada Lovelace: simple" in cli("-C", "repo", "show", "a2").out
