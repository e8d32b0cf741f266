"""Which Git folder a place has: the `.git` of its own files, and none that a commit or an archive put in its way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from evogit.core import RepositoryError
from evogit.repository import Repository
from evogit.trust import Claim, Trust, UntrustedError
from tests.plain_git import git


def make(folder: Path, *options: str) -> Path:
    folder.parent.mkdir(parents=True, exist_ok=True)
    git(folder.parent, "init", "-q", *options, str(folder))
    return folder


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is trusted yet."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A repository of the user's, which they trust."""
    mine = make(tmp_path / "mine")
    git(mine, "commit", "-q", "--allow-empty", "-m", "x")
    Trust.of_user().add(Claim("folder", str(mine)))
    return mine


def linked_worktree(mine: Path) -> list[Path]:
    git(mine, "worktree", "add", "-q", "../tree")
    return [mine.parent / "tree"]


def submodule(mine: Path) -> list[Path]:
    make(mine.parent / "outer")
    git(mine.parent / "outer", "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(mine), "sub")
    return [mine.parent / "outer" / "sub"]


def separate(mine: Path) -> list[Path]:
    return [make(mine.parent / "separate", "--separate-git-dir", str(mine.parent / "store"))]


def bare(mine: Path) -> list[Path]:
    return [make(mine.parent / "bare.git", "--bare")]


def bare_with_worktrees(mine: Path) -> list[Path]:
    folder = mine.parent / "trees"
    git(mine, "clone", "-q", "--bare", ".", str(folder / ".bare"))
    (folder / ".git").write_text("gitdir: ./.bare\n")
    git(folder, "worktree", "add", "-q", "one")
    return [folder, folder / ".bare", folder / "one"]


def repository_in_another_one(mine: Path) -> list[Path]:
    return [make(mine / "vendor" / "lib")]


def shared_clone(mine: Path) -> list[Path]:
    git(mine, "clone", "-q", "--shared", ".", "../shared")
    return [mine.parent / "shared"]


def link_to_the_files(mine: Path) -> list[Path]:
    (mine.parent / "short").symlink_to(mine)
    return [mine.parent / "short"]


def its_git_folder(mine: Path) -> list[Path]:
    return [mine / ".git"]


@pytest.mark.parametrize(
    "ordinary",
    [
        *(linked_worktree, submodule, separate, bare, bare_with_worktrees, repository_in_another_one, shared_clone),
        *(link_to_the_files, its_git_folder),
    ],
)
def test_ordinary_git_folders_are_used_unasked(mine: Path, ordinary: Callable[[Path], list[Path]]) -> None:
    for place in ordinary(mine):
        found = Repository.discover(place)
        assert found.path == Repository.open(place).path
        if not found.bare and place.name != ".git":
            assert found.path == place.resolve()
            (place / "below").mkdir()
            assert Repository.discover(place / "below").path == place.resolve()


def committed_with_settings(mine: Path) -> Path:
    folder = make(mine.parent / "clone" / "results", "--bare")
    git(folder, "config", "core.bare", "false")
    git(folder, "config", "core.worktree", "../../mine")
    return folder


def committed_without_a_worktree(mine: Path) -> Path:
    folder = make(mine.parent / "clone" / "results", "--bare")
    git(folder, "config", "core.bare", "false")
    return folder


def file_to_a_store(mine: Path) -> Path:
    folder = make(mine.parent / "clone")
    git(folder, "config", "core.worktree", "../../mine")
    (folder / ".git").rename(folder / "store")
    (folder / ".git").write_text("gitdir: store\n")
    return folder


def file_to_the_users_own(mine: Path) -> Path:
    (mine.parent / "clone").mkdir()
    (mine.parent / "clone" / ".git").write_text("gitdir: ../mine/.git\n")
    return mine.parent / "clone"


def file_to_a_worktree_of_the_users_own(mine: Path) -> Path:
    linked_worktree(mine)
    (mine.parent / "clone").mkdir()
    (mine.parent / "clone" / ".git").write_text("gitdir: ../mine/.git/worktrees/tree\n")
    return mine.parent / "clone"


def false_worktree_of_the_users_own(mine: Path) -> Path:
    folder = mine.parent / "clone" / ".git"
    folder.mkdir(parents=True)
    for name, text in {"HEAD": "ref: refs/heads/x", "commondir": "../../mine/.git", "gitdir": str(folder)}.items():
        (folder / name).write_text(f"{text}\n")
    return mine.parent / "clone"


def setting(mine: Path) -> Path:
    folder = make(mine.parent / "clone")
    git(folder, "config", "core.worktree", str(mine))
    return folder


@pytest.mark.parametrize(
    "hostile",
    [
        *(committed_with_settings, committed_without_a_worktree, file_to_a_store, file_to_the_users_own),
        *(file_to_a_worktree_of_the_users_own, false_worktree_of_the_users_own, setting),
    ],
)
def test_a_git_folder_of_other_files_is_refused(mine: Path, hostile: Callable[[Path], Path]) -> None:
    place = hostile(mine)
    if place.name == "results":
        make(place.parent)
    for way in (Repository.discover, Repository.open):
        with pytest.raises(RepositoryError, match="leads elsewhere"):
            way(place)


def test_a_bare_repository_among_the_files_of_another_one_needs_trust(tmp_path: Path) -> None:
    clone = make(tmp_path / "clone")
    results = make(clone / "results", "--bare")
    for way in (Repository.discover, Repository.open):
        with pytest.raises(UntrustedError, match=f"trust {results}"):
            way(results)
    with pytest.raises(UntrustedError):
        Repository.discover(results / "refs")
    Trust.of_user().add(Claim("folder", str(clone)))  # what it brings along is none of it
    with pytest.raises(UntrustedError):
        Repository.open(results)
    Trust.of_user().add(Claim("folder", str(results)))
    assert Repository.discover(results).bare


def test_a_pointer_to_no_path_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".git").write_bytes(b"gitdir: g\0x\n")
    with pytest.raises(RepositoryError, match="one line"):
        Repository.discover(tmp_path)
