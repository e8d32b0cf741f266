"""Refs moved without waiting for the disk are moved as Git moves them."""

from __future__ import annotations

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


def move(repo: pygit2.Repository, new: str, expected: str | None, name: str = NAME) -> bool:
    return refs.swap(repo, Path(repo.path), name, new, expected, exchange=True)


def files(repo: pygit2.Repository) -> list[str]:
    return [file.name for file in (Path(repo.path) / NAME).parent.iterdir()]


def test_a_ref_moves_from_what_is_expected_only_and_leaves_no_lock(repo: pygit2.Repository, commits: list[str]) -> None:
    first, second, third = commits
    assert move(repo, first, None)
    assert move(repo, second, first)
    assert not move(repo, third, first)
    assert refs.target(repo, NAME) == second
    assert files(repo) == ["h"]


def test_a_packed_ref_moves_and_one_with_a_log_keeps_it(repo: pygit2.Repository, commits: list[str], git) -> None:
    first, second, third = commits
    move(repo, first, None)
    git("pack-refs", "--all")
    assert move(repo, second, first)
    assert move(repo, third, second)
    assert refs.target(repo, NAME) == third
    git("config", "core.logAllRefUpdates", "always")
    git("update-ref", NAME, first)
    assert move(repo, second, first)
    assert [entry.oid_new for entry in repo.lookup_reference(NAME).log()] == [second, first]


def test_files_that_cannot_change_names_are_no_obstacle(repo: pygit2.Repository, commits, monkeypatch) -> None:
    first, second, _ = commits
    move(repo, first, None)
    monkeypatch.setattr(refs, "EXCHANGE", 1 << 20)  # which the kernel refuses, as other file systems refuse EXCHANGE
    assert move(repo, second, first)
    assert refs.target(repo, NAME) == second
    assert files(repo) == ["h"]


def test_who_reads_a_ref_while_refs_move_reads_what_it_was(repo: pygit2.Repository, commits: list[str]) -> None:
    first, second, third = commits
    other = f"{NAME}-other"
    for name in (NAME, other):
        assert move(repo, first, None, name)
    with (Path(repo.path) / NAME).open() as file:
        for old, new in ((first, second), (second, third), (third, second)):
            assert move(repo, new, old)
            assert move(repo, new, old, other)
        assert file.read().strip() == first
