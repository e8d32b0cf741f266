"""Refs moved without waiting for the disk are moved as Git moves them."""

from __future__ import annotations

import os
from pathlib import Path

import pygit2
import pytest

from evogit.repository import Repository, refs

NAME = "refs/evogit/r/journal/h"


@pytest.fixture
def repo(repository: Repository) -> pygit2.Repository:
    return pygit2.Repository(str(repository.git_dir))


@pytest.fixture
def commits(repo: pygit2.Repository) -> list[str]:
    who, tree = pygit2.Signature("h", "h@evogit.invalid", 0, 0), repo.TreeBuilder().write()
    return [str(repo.create_commit(None, who, who, f"{number}", tree, [])) for number in range(3)]


def move(repo: pygit2.Repository, new: str, expected: str | None) -> bool:
    return refs.swap(repo, Path(repo.path), NAME, new, expected, exchange=True)


def files(repo: pygit2.Repository) -> list[str]:
    return [file.name for file in (Path(repo.path) / NAME).parent.iterdir()]


def test_a_ref_moves_from_what_is_expected_only_and_leaves_no_lock(repo: pygit2.Repository, commits: list[str]) -> None:
    first, second, third = commits
    assert move(repo, first, None)
    assert move(repo, second, first)
    assert not move(repo, third, first)
    assert refs.target(repo, NAME) == second
    assert files(repo) == ["h"]


def test_a_packed_ref_moves(repo: pygit2.Repository, commits: list[str], git) -> None:
    first, second, third = commits
    move(repo, first, None)
    git("pack-refs", "--all")
    assert move(repo, second, first)
    assert move(repo, third, second)
    assert refs.target(repo, NAME) == third


def test_a_ref_that_has_a_log_keeps_it(repo: pygit2.Repository, commits: list[str], git) -> None:
    first, second, _ = commits
    git("config", "core.logAllRefUpdates", "always")
    git("update-ref", NAME, first)
    assert move(repo, second, first)
    assert [entry.oid_new for entry in repo.lookup_reference(NAME).log()] == [second, first]


def test_files_that_cannot_change_names_are_no_obstacle(
    repo: pygit2.Repository, commits: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, _ = commits
    move(repo, first, None)
    monkeypatch.setattr(refs, "EXCHANGE", 1 << 20)  # which the kernel refuses, as other file systems refuse EXCHANGE
    assert move(repo, second, first)
    assert refs.target(repo, NAME) == second
    assert files(repo) == ["h"]


def test_the_file_that_a_ref_had_becomes_the_next_lock(repo: pygit2.Repository, commits: list[str]) -> None:
    first, second, third = commits
    move(repo, first, None)
    numbers = set()
    for new, old in ((second, first), (third, second), (first, third), (second, first)):
        assert move(repo, new, old)
        assert not move(repo, third, old)
        numbers.add((Path(repo.path) / NAME).stat().st_ino)
    assert refs.target(repo, NAME) == second
    assert files(repo) == ["h"]
    assert len(numbers) == 2


def test_a_lock_made_of_the_spare_file_is_as_young_as_it_is(repo: pygit2.Repository, commits: list[str]) -> None:
    first, second, third = commits
    move(repo, first, None)
    move(repo, second, first)
    spare = Path(repo.path) / "evogit" / "spare"
    os.utime(spare, (0, 0))
    refs._lock(f"{Path(repo.path) / NAME}.lock", str(spare))
    assert not refs.break_lock(Path(repo.path), NAME, refs.STALE_AFTER)
    assert refs.break_lock(Path(repo.path), NAME, -1)
    assert move(repo, third, second)
