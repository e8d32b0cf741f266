"""`evogit sync`, and what tells hosts apart."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evogit.repository import Repository
from evogit.repository.state_files import Contact, note_contact
from evogit.repository.state_folder import StateFolder
from evogit.testing import RecordedRun, run_started
from tests.plain_git import git

from .conftest import Cli, Story

NOTHING = "nothing new of other hosts came"


def test_what_each_host_brought_is_told(cli: Cli, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare", "server.git")
    alpha = Story(tmp_path / "alpha")
    seed = alpha.add(1.0, title="Seed")
    told = cli("-C", "alpha", "sync", "server.git").out
    assert told == f"toy: {NOTHING}, what was written here went ({tmp_path / 'server.git'})\n"
    Repository.create(tmp_path / "beta").name_clone("beta")
    assert "toy: 3 journal entries of other hosts came, nothing new" in cli("-C", "beta", "sync", "./server.git").out
    beta = RecordedRun(tmp_path / "beta", "toy")
    beta.append(run_started(engine="beta-0a0b0c", agents=("beta-a1",)))
    child = beta.add_files({"main.py": b"2\n"}, seed, value=2.0, engine="beta-0a0b0c", agent="beta-a1", move=1)
    cli("-C", "beta", "promote", child, "-m", "good", "--yes")
    cli("-C", "beta", "sync", "server.git")
    assert cli("-C", "alpha", "sync", "server.git", "--json").json["done"]["toy"]["came"] == 4
    shown = cli("-C", "alpha", "status").out
    assert re.search(rf"beta +1 +1 +1 +1 +2\.0+ +{child[:7]} +1 +\d+s ago", shown)
    assert f"server {tmp_path / 'server.git'}: exchanged" in shown
    [here, there] = cli("-C", "alpha", "status", "--json").json["hosts"]
    assert (here["here"], there["host"], there["best"]["commit"]) == (True, "beta", child)
    assert "hosts" in cli("-C", "alpha", "report", "--json").json
    (tmp_path / "server.git").rename(tmp_path / "away")
    failed = cli("-C", "alpha", "sync", tmp_path / "server.git", "--name", "toy")
    assert (failed.code, "toy: fetching from" in failed.err) == (1, True)
    assert "0s, 1 attempt: fetching from" in cli("-C", "alpha", "status").out


def test_a_run_does_not_begin_where_nobody_knows_whether_it_is_there_already(cli: Cli) -> None:
    said = cli("run", "circle_packing", "--remote", "nowhere", "--evaluations", "3", "--sandbox", "none")
    assert said.code == 4
    assert "expected to reach the server before a run begins, as others may have begun it: fetching from" in said.err


def test_what_one_host_took_for_the_best_before_it_heard_of_others_is_no_damage(cli: Cli, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare", "server.git")
    alpha = Story(tmp_path / "alpha")
    seed = alpha.add(1.0, title="Seed")
    cli("-C", "alpha", "sync", "./server.git")
    Repository.create(tmp_path / "beta").name_clone("beta")
    cli("-C", "beta", "sync", "./server.git")
    RecordedRun(tmp_path / "beta", "toy").add_files({"main.py": b"2\n"}, seed, value=3.0)
    cli("-C", "beta", "sync", "./server.git")
    for number in range(3):  # later by the clock of the run, and worse
        alpha.decide("guide", reason=f"{number}")
    late = alpha.add(2.0, seed, title="the best so far")
    git(tmp_path / "alpha", "update-ref", "refs/heads/evogit/toy/best", late)
    cli("-C", "alpha", "sync", "./server.git")
    done = cli("-C", "alpha", "doctor", "runs")
    assert (done.code, "best" in done.out, "sound" in done.out) == (0, True, True)


def test_signing_without_a_key_is_refused_before_anything_is_exchanged(cli: Cli, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare", "server.git")
    Story(tmp_path / "alpha").add(1.0, title="Seed")
    git(tmp_path / "alpha", "config", "evogit.sign", "true")
    said = cli("-C", "alpha", "sync", "server.git")
    assert (said.code, "expected the setting gpg.format = ssh, got none" in said.err) == (2, True)
    assert git(tmp_path / "server.git", "for-each-ref") == ""


def test_a_note_of_an_archive_names_no_server(cli: Cli, tmp_path: Path) -> None:
    Story(tmp_path / "alpha").add(1.0, title="Seed")
    for name in ("origin.git", "evil.git"):
        git(tmp_path, "init", "-q", "--bare", name)
    for server in (f"--upload-pack=touch {tmp_path / 'canary'};", str(tmp_path / "evil.git")):
        note_contact(StateFolder(tmp_path / "alpha" / ".git"), "toy", Contact(server))
        assert cli("-C", "alpha", "sync").code == 3
    git(tmp_path / "alpha", "remote", "add", "origin", str(tmp_path / "origin.git"))
    assert "(origin)" in cli("-C", "alpha", "sync").out
    assert not (tmp_path / "canary").exists()
    assert git(tmp_path / "evil.git", "for-each-ref") == ""
    assert git(tmp_path / "origin.git", "for-each-ref")


def test_of_thousands_of_runs_there_some_are_fetched(cli: Cli, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare", "server.git")
    alpha = Story(tmp_path / "alpha")
    seed = alpha.add(1.0, title="Seed")
    git(tmp_path / "alpha", "push", "-q", str(tmp_path / "server.git"), f"{seed}:refs/heads/main")
    text = "".join(f"create refs/evogit/x{number}/journal/h {seed}\n" for number in range(3))
    git(tmp_path / "server.git", "update-ref", "--stdin", input=text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("evogit.cli.commands.sync.MAX_NEW_RUNS", 1)
        done = cli("-C", "alpha", "sync", "server.git")
    assert "left out 2 runs there that are not here" in done.err
    assert done.out.count("went (") == 2


def test_a_stranger_s_run_has_nothing_kept_by_fsck(cli: Cli, tmp_path: Path) -> None:
    """What it names may be a private commit, and what is kept goes to the server."""
    git(tmp_path, "init", "-q", "--bare", "server.git")
    alpha = Story(tmp_path / "alpha")
    seed = alpha.add(1.0, title="Seed")
    private = alpha.commit({"main.py": b"secret\n"}, seed)
    beta = Story(tmp_path / "beta", run="zzz")
    beta.propose(candidate=private, tree=alpha.repository.tree_of(private))
    ref = f"refs/evogit/zzz/journal/{beta.repository.host}"
    git(tmp_path / "alpha", "fetch", "-q", str(tmp_path / "beta"), f"{ref}:{ref}")
    for command in (("doctor", "runs", "--repair"), ("sync", "server.git")):
        cli("-C", "alpha", *command)
    assert git(tmp_path / "server.git", "cat-file", "--batch-check", input=private).endswith("missing\n")


def test_a_run_with_an_unfit_name_stops_no_other(cli: Cli, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare", "server.git")
    alpha = Story(tmp_path / "alpha")
    seed = alpha.add(1.0, title="Seed")
    git(tmp_path / "alpha", "push", "-q", str(tmp_path / "server.git"), f"{seed}:refs/evogit/-x/journal/h")
    done = cli("-C", "alpha", "sync", "server.git")
    assert (done.code, "went" in done.out, "1 run" in done.err) == (0, True, True)
    git(tmp_path / "alpha", "update-ref", "refs/evogit/-x/journal/h", seed)
    for command in ("doctor runs", "clean toy", "clean toy --yes", "status", "sync server.git"):
        assert cli("-C", "alpha", *command.split()).code == 0
