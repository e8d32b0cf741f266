"""Entries of a run that came with a fetch from somebody who has no business there."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from evogit.events import Spent
from evogit.repository import Repository
from evogit.repository.run_keys import RunKeys, commitment, seal
from evogit.testing import RecordedRun
from evogit.trust import Trust
from tests.cli.conftest import Cli

EVERYTHING = "refs/evogit/*:refs/evogit/*"


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(folder), *arguments], check=True, capture_output=True, text=True
    ).stdout.strip()


class Ours:
    """A run with a key, and a clone of it whose owner does not have the key."""

    def __init__(self, folder: Path) -> None:
        repository = Repository.create(folder / "ours")
        self.folder, self.key = folder / "ours", repository.keys.make("toy")
        self.run = RecordedRun(repository, "toy", inputs=commitment(self.key))
        self.seed = self.run.add_files({"main.py": b"1\n"}, value=1.0)
        self.better = self.run.add_files({"main.py": b"2\n"}, self.seed, value=2.0)
        self.theirs = folder / "theirs"
        git(folder, "clone", "-q", str(self.folder), str(self.theirs))
        git(self.theirs, "fetch", "-q", str(self.folder), EVERYTHING)

    @property
    def strangers(self) -> RecordedRun:
        return RecordedRun(self.theirs, "toy")

    def fetch(self) -> None:
        git(self.folder, "fetch", "-q", str(self.theirs), EVERYTHING)


@pytest.fixture
def ours(tmp_path: Path) -> Ours:
    return Ours(tmp_path)


def test_a_forged_score_that_was_fetched_never_ranks(ours: Ours, cli: Cli) -> None:
    stranger = ours.strangers
    forged = stranger.add_files({"main.py": b"x\n"}, ours.seed, value=99.0)
    stranger.decide("prune", ours.better)
    ours.fetch()
    done = cli("-C", "ours", "show", "best")
    assert ours.better[:7] in done.out
    assert f"note: left out what {stranger.repository.host} wrote (entries: 3)" in done.err
    assert forged not in cli("-C", "ours", "log", "--json").out
    ours.run.add_files({"main.py": b"3\n"}, ours.better, value=3.0)  # an engine that is at work goes on
    assert cli("-C", "ours", "show", "best", "--json").json["metrics"] == {"score": 3.0}


def test_who_gets_the_key_takes_part(ours: Ours, cli: Cli) -> None:
    key = ours.theirs / ".git/evogit/keys/toy"
    key.parent.mkdir(parents=True)
    key.write_bytes(ours.key)
    found = ours.strangers.add_files({"main.py": b"x\n"}, ours.seed, value=99.0)
    ours.fetch()
    done = cli("-C", "ours", "show", "best", "--json")
    assert (done.json["commit"], done.err) == (found, "")


def test_a_run_of_somebody_else_says_so_wherever_it_is_shown(ours: Ours, cli: Cli) -> None:
    for command in ("status", "report"):
        assert "the run toy was made by" in cli("-C", "theirs", command).err
    assert json.loads(cli("-C", "theirs", "status", "--json").out)["key"] == "elsewhere"
    assert json.loads(cli("-C", "ours", "status", "--json").out)["key"] == "here"


def test_what_was_written_behind_our_own_entries_is_refused_with_what_to_do(ours: Ours, cli: Cli) -> None:
    ref = f"refs/evogit/toy/journal/{ours.run.repository.host}"
    ours.strangers.journal.keep({}, ours.seed)
    (ours.theirs / ".git/evogit/host").write_text(ours.run.repository.host)
    ours.strangers.evaluate(ours.seed, 99.0, repeat=1)
    ours.fetch()
    refused = cli("-C", "ours", "show", "best")
    assert (refused.code, "sealed, by 1: that came from elsewhere" in refused.err) == (1, True)
    git(ours.folder, *refused.err.split("`git ")[1].split("`")[0].split())
    assert git(ours.folder, "rev-parse", ref) == ours.run.entries[-1].id
    assert ours.better[:7] in cli("-C", "ours", "show", "best").out


def test_our_own_entries_under_another_name_count_once(ours: Ours, cli: Cli) -> None:
    ref = "refs/evogit/toy/journal/"
    git(ours.theirs, "update-ref", f"{ref}elsewhere", git(ours.folder, "rev-parse", ref + ours.run.repository.host))
    ours.fetch()
    done = cli("-C", "ours", "status", "--json")
    assert done.json["evaluated"] == 2


@pytest.mark.slow
def test_a_snapshot_made_before_the_key_came_is_not_believed(ours: Ours, cli: Cli) -> None:
    file = ours.folder / ".git/evogit/keys/toy"
    file.rename(apart := ours.folder / "key")
    stranger = ours.strangers
    for value in range(300):
        stranger.add_files({"main.py": b"%d\n" % value}, ours.seed, value=10.0 + value)
    ours.fetch()
    assert cli("-C", "ours", "show", "best", "--json").json["metrics"] == {"score": 309.0}
    apart.rename(file)
    assert cli("-C", "ours", "show", "best", "--json").json["metrics"] == {"score": 2.0}


def test_sealed_entries_of_ours_in_copies_count_once(ours: Ours, cli: Cli) -> None:
    """Money that was spent once is not spent again by whoever copies what says so, even with another time in it."""
    ref, host = "refs/evogit/toy/journal/", ours.run.repository.host
    ours.run.append(Spent(engine="e", move=1, agent="a1", model="m", dollars=1.0))
    git(ours.theirs, "fetch", "-q", str(ours.folder), EVERYTHING)
    entry = git(ours.theirs, "cat-file", "commit", ref + host) + "\n"
    for number in range(3):
        (ours.theirs / "twin").write_text(re.sub(r"(committer .*> )\d+", rf"\g<1>{number + 7}", entry))
        twin = git(ours.theirs, "hash-object", "-t", "commit", "-w", str(ours.theirs / "twin"))
        git(ours.theirs, "update-ref", f"{ref}copy{number}", ref + host)
        git(ours.theirs, "update-ref", f"{ref}twin{number}", twin)
    ours.fetch()
    done = cli("-C", "ours", "status", "--json")
    assert done.json["spending"]["dollars"] == 1.0


@pytest.mark.parametrize("what", ["newer", "misshapen", "no record", "blob", "tag"])
def test_what_a_stranger_calls_a_journal_stops_nobody(ours: Ours, cli: Cli, what: str) -> None:
    texts = {
        "newer": '{"evogit": 99, "seq": 1, "event": "x"}',
        "misshapen": '{"evogit": 1, "seq": 1, "event": "spent"}',
    }
    told = ours.theirs / "told"
    told.write_text(f"x\n\n{texts.get(what, 'hello')}\n")
    who = ("-c", "user.name=x", "-c", "user.email=x")
    tree = f"refs/evogit/toy/journal/{ours.run.repository.host}^{{tree}}"
    match what:
        case "blob":
            made = git(ours.theirs, "hash-object", "-w", str(told))
        case "tag":
            git(ours.theirs, *who, "tag", "-am", "x", "t", tree)
            made = "t"
        case _:
            made = git(ours.theirs, *who, "commit-tree", "-F", str(told), tree)
    git(ours.theirs, "update-ref", "refs/evogit/toy/journal/str\u202eanger", git(ours.theirs, "rev-parse", made))
    ours.fetch()
    done = cli("-C", "ours", "show", "best")
    assert (done.code, ours.better[:7] in done.out, "left out what str" in done.err) == (0, True, True)
    assert "\u202e" not in done.err
    ours.run.add_files({"main.py": b"3\n"}, ours.better, value=3.0)


def test_a_key_of_another_run_costs_nobody_a_journal(ours: Ours, cli: Cli) -> None:
    (ours.folder / ".git/evogit/keys/toy").write_bytes(os.urandom(32))
    done = cli("-C", "ours", "show", "best")
    assert (done.code, "evogit trust" in done.err) == (0, True), done.err
    assert cli("-C", "ours", "prune", "best", "-m", "x", "-y").code == 4
    for claim in ours.run.repository.keys.untrusted("toy"):
        ours.run.repository.trust.add(claim)
    done = cli("-C", "ours", "show", "best")
    assert (done.code, "expected the key of the run toy" in done.err, "update-ref" in done.err) == (1, True, False)


def test_deterministic_runs_draw_the_same_inputs_and_believe_no_entries_of_each_other(
    ours: Ours, cli: Cli, tmp_path: Path
) -> None:
    (tmp_path / "clone").mkdir()
    keys = RunKeys(tmp_path / "clone", Trust.of_user())
    one, two = (keys.share(name, b"s" * 32) for name in ("one", "two"))
    assert commitment(one) == commitment(two) != commitment(ours.key)
    assert seal(one, "host", None, "x") != seal(two, "host", None, "x")
    assert keys.share("one", b"s" * 32) == keys.find("one") == one, "engines that begin a run together have one"
