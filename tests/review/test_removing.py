"""Removing a run leaves a person's repository as if it had never been there, but for what they merged."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from evogit.core import RefusedError
from evogit.repository import Repository
from evogit.review.landing import land, prepare
from evogit.review.removing import remains, remove
from tests.own import Own, main


def outside(folder: Path) -> dict[str, bytes]:
    """What is a person's own in a Git directory: HEAD, index, hooks, config, and the files beside it."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    mine = [path for path in files if not {"objects", "logs", "evogit"} & set(path.relative_to(folder).parts)]
    return {str(path): path.read_bytes() for path in mine if ".git/refs" not in str(path) and path.name != "index"}


def grown(own: Own) -> str:
    """A run with all that engines and people leave: branches, notes, a landing that was merged; the merged commit."""
    best = own.add(2, own.seed, files=main(2))
    other = own.add(3, own.seed, files=main(3))
    plan = asyncio.run(prepare(own.repository, own.history, own.history.phylogeny[best], None, squash=False))
    made = land(own.stored, plan, [(plan.tree, "merged")], "", squash=False).event
    own.git("merge", "-q", "--ff-only", f"evogit/own/land/{best[:7]}")
    for ref in ("refs/heads/evogit/own/best", "refs/heads/evogit/own/human/ada", "refs/evogit/own/agents/a1"):
        own.repository.move_branch(ref, other)
    own.repository.write_notes("own", {best: "ok"})
    return str(made.commit)  # type: ignore[union-attr]


@pytest.mark.parametrize("packed", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_after_a_collection_only_what_was_merged_remains(own: Own, packed: bool) -> None:
    hook = own.folder / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    mine = outside(own.folder)
    merged = grown(own)
    if packed:
        own.git("pack-refs", "--all")
        mine = outside(own.folder)
    status = own.git("status", "--porcelain", "--branch")
    gone = remove(Repository.open(own.folder), "own")
    assert gone.branches == ["evogit/own/best", "evogit/own/human/ada", f"evogit/own/land/{gone.branches[2][-7:]}"]
    assert own.git("for-each-ref", "--format=%(refname)") == "refs/heads/main"
    assert own.git("rev-parse", "main") == merged
    assert own.git("status", "--porcelain", "--branch") == status
    after = outside(own.folder)
    if packed:
        mine = {path: text for path, text in mine.items() if not path.endswith("packed-refs")}
        after = {path: text for path, text in after.items() if not path.endswith("packed-refs")}
    changed = {path for path in mine.keys() | after.keys() if mine.get(path) != after.get(path)}
    assert {Path(path).name for path in changed} <= {"main.py", "ORIG_HEAD"}
    assert not [path for path in (own.folder / ".git").rglob("*evogit*") if "objects" not in path.parts]
    own.git("gc", "-q", "--prune=now")
    left = {line.split()[0] for line in own.git("cat-file", "--batch-all-objects", "--batch-check").splitlines()}
    assert left == {line.split()[0] for line in own.git("rev-list", "--objects", "main").splitlines()}
    own.git("fsck", "--strict")


@pytest.mark.slow
def test_another_run_is_left_alone(own: Own) -> None:
    other = own.repository.journal("own2", lambda entry: None)
    started = own.history.started
    assert started is not None
    other.append(started)
    remove(own.repository, "own")
    assert own.repository.runs() == ["own2"]
    assert (own.folder / ".git" / "evogit" / "host").exists()
    own.git("fsck", "--strict")


def test_it_is_refused_while_an_engine_is_at_work_or_a_branch_is_checked_out(own: Own) -> None:
    before = own.git("for-each-ref")
    with own.repository.engines("own").enter(join=False), pytest.raises(RefusedError, match="works on own; stop it"):
        remains(own.repository, "own")
    with own.repository.engines("own").enter(join=False), pytest.raises(RefusedError, match="another engine"):
        remove(own.repository, "own")
    assert own.git("for-each-ref") == before
    own.repository.move_branch("refs/heads/evogit/own/best", own.seed)
    own.git("worktree", "add", "-q", str(own.folder.parent / "tree"), "evogit/own/best")
    with pytest.raises(RefusedError, match="evogit/own/best is checked out"):
        remove(own.repository, "own")
