"""`evogit run --at`: a run that begins where another one was."""

from __future__ import annotations

from pathlib import Path

import pytest

from evogit.repository import Repository
from evogit.review import open_run
from tests.conftest import write_task
from tests.plain_git import git

from .conftest import Cli


@pytest.mark.slow
def test_a_fork_goes_on_in_its_own_way_and_repeats(cli: Cli, tmp_path: Path) -> None:
    task, path = write_task(tmp_path / "tiny"), tmp_path / "r"
    run = ("-C", path, "run", task, "--deterministic", "--sandbox", "none", "--agents", "2", "-j", "1")
    assert cli(*run, "--name", "old", "--evaluations", "10").code == 0
    before = git(path, "for-each-ref", "refs/evogit/old", "refs/heads/evogit/old")
    fork = (*run, "--at", "old:@6", "--seed", "6", "--evaluations", "9", "--selector", "weighted")
    refused = cli(*fork, "--name", "one", "--split", "smoke")
    assert (refused.code, "evaluates on the split 'train'" in refused.err) == (4, True), refused.err
    for name in ("one", "two"):
        done = cli(*fork, "--name", name)
        assert done.code == 0, done.err
    histories = {name: open_run(Repository.open(path), name).history for name in ("old", "one", "two")}
    ids = {name: [each.commit for each in history.phylogeny] for name, history in histories.items()}
    assert ids["one"] == ids["two"] != ids["old"][:9]
    assert ids["one"][:6] == ids["old"][:6]
    assert histories["one"].counts.evaluated == 9
    assert git(path, "for-each-ref", "refs/evogit/old", "refs/heads/evogit/old") == before
    assert cli("-C", path, "status", "--name", "one", "--json").json["forked"]["run"] == "old"
    assert "forked from old at" in cli("-C", path, "status", "--name", "one").out
    for gone in ("old", "two"):
        assert cli("-C", path, "clean", gone, "--all", "--yes").code == 0
    git(path, "-c", "gc.reflogExpire=now", "gc", "-q", "--prune=now")
    git(path, "fsck", "--strict")
    more = cli(*run, "--name", "one", "--evaluations", "10")
    assert more.code == 0, more.err
    assert "10 evaluated" in cli("-C", path, "status").out
