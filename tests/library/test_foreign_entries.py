"""Runs by a function execute candidates in the caller's process, so nobody else may bring any."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

import evogit
from evogit.config.run_settings import Settings
from evogit.core import RefusedError
from evogit.engine.run_key import begin_inputs
from evogit.events import Proposed
from evogit.history.context import StoredRun
from evogit.repository import Repository, journal_records
from evogit.testing import RecordedRun
from evogit.trust import UntrustedError
from tests.plain_git import git


def value_of(file: Path) -> float:
    return float(runpy.run_path(str(file))["value"](2))


def propose_as_stranger(repository: Repository, run: str, seed: str, content: bytes, *parents: str) -> str:
    """Journal a candidate as a host without any key; its id."""
    [path] = git(repository.path, "ls-tree", "-r", "--name-only", seed).split() or ["program.py"]
    tree = repository.trees.write(repository.tree_of(seed), {path: content})
    commit = repository.commit(tree, parents, author="evil", time=1_700_000_000, title="nice", trailers={})
    known = {"engine": "", "move": 9, "agent": "human", "operator": "human"}
    event = Proposed(candidate=commit, tree=tree, parents=parents, **known)  # type: ignore[arg-type]
    empty, who = repository.trees.write(None, {}), ("-c", "user.name=evil", "-c", "user.email=evil@evogit.invalid")
    message = journal_records.encode(event, 500)
    entry = git(repository.path, *who, "commit-tree", empty, "-F", "-", input=message).strip()
    git(repository.path, "update-ref", f"refs/evogit/{run}/journal/evil", entry)
    return commit


def test_a_strangers_candidate_never_runs_in_the_process_of_a_function(tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    first = evogit.evolve("program.py", evaluate=value_of, evaluations=3)
    repository = Repository.open(Path("evogit-program"))
    content = f"open({str(canary)!r}, 'w').close()\ndef value(x): return 1e9\n".encode()
    theirs = propose_as_stranger(repository, "program", first[0].id, content, first[0].id)
    again = evogit.evolve("program.py", evaluate=value_of, evaluations=6)
    assert theirs not in [each.id for each in again]
    assert not canary.exists()
    assert again.evaluations == 6


def test_nobody_writes_entries_of_a_run_before_it_begins(tmp_path: Path) -> None:
    repository = Repository.create(tmp_path / "own")
    seed = RecordedRun(repository, "other").add_files({"program.py": b"\n"})
    propose_as_stranger(repository, "r", seed, b"pass\n")
    with pytest.raises(RefusedError):
        begin_inputs(StoredRun.open(repository, "r"), Settings(), {})
    assert not repository.keys.find("r")


def test_a_run_without_a_key_goes_on_alone_unless_others_are_trusted(tmp_path: Path) -> None:
    repository = Repository.create(tmp_path / "own")
    seed = RecordedRun(repository, "r").add_files({"program.py": b"\n"}, value=1.0)
    own = StoredRun.open(repository, "r")
    begin_inputs(own, Settings(), {})
    theirs = propose_as_stranger(repository, "r", seed, b"pass\n", seed)
    own.journal.refresh()
    assert theirs not in own.history.phylogeny
    with pytest.raises(UntrustedError) as refused:
        begin_inputs(StoredRun.open(repository, "r"), Settings(), {})
    for claim in refused.value.claims:
        repository.trust.add(claim)
    trusting = StoredRun.open(repository, "r")
    begin_inputs(trusting, Settings(), {})
    assert theirs in trusting.history.phylogeny
