"""Trees that no Git makes, as a stranger's repository may hold: a sentence says so, whatever is asked about them."""

from __future__ import annotations

import hashlib
import zlib

import pytest

from evogit.config.values import is_safe_path
from evogit.core import RepositoryError
from evogit.repository import Repository

NAMES = [b"/etc/passwd", b"", b".", b"..", b"../x", b".git", b".GIT", b"a//b", b"a/../b", b"x/"]
UNSEEN = "\u200c\u200d\u200e\u202a\u206f\ufeff"
SPELLINGS = [
    *("." + "git"[:place] + letter + "git"[place:] for letter in UNSEEN for place in range(4)),
    *(".git.", ".git ", ".GiT. .", "git~1", "GIT~1"),
    *(".git::$INDEX_ALLOCATION", ".git:x", "a\\.git\\config", "\uff0egit"),
]
"""What is `.git` on macOS or Windows."""
ODD = [b"a\nb", b"\xff\xfe", b"a\\b", b"\xe2\x80\xaeb", b"-rf", b"C:x", b"x" * 300]  # what Git takes

LOOKS = ("diff", "line_changes", "changed_paths", "lines", "changes", "entries", "draft")


def tree_of(repository: Repository, name: bytes, *, folder: bool) -> str:
    """A tree with one entry, or with a folder of that name in which there is one."""
    mode, found = 0o100644, repository.trees.write_blob(b"x\n")
    for _ in range(1 + folder):
        mode, found = 0o40000, written(repository, b"%o %s\0%s" % (mode, name, bytes.fromhex(found)))
    return found


def written(repository: Repository, rows: bytes) -> str:
    """The id of a tree of these entries, whatever they are."""
    content = b"tree %d\0%s" % (len(rows), rows)
    found = hashlib.sha1(content, usedforsecurity=False).hexdigest()
    file = repository.common / "objects" / found[:2] / found[2:]
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(zlib.compress(content))
    return found


def look(repository: Repository, how: str, tree: str) -> None:
    trees, base = repository.trees, repository.trees.write(None, {"a.py": b"1"})
    match how:
        case "lines":
            repository.lines(base, tree, lambda path: True)
        case "changes":
            trees.changes(base, tree, lambda path: True)
        case "entries":
            trees.entries(tree)
        case "with_entries":
            trees.with_entries(tree, {"z": (0o100644, trees.write_blob(b""))})
        case "draft":
            repository.merger.draft(base, tree, base)
        case _:
            getattr(repository, how)(base, tree)


@pytest.mark.parametrize("folder", [False, True], ids=["file", "folder"])
@pytest.mark.parametrize("name", NAMES)
def test_paths_that_git_never_writes_are_refused(repository: Repository, name: bytes, folder: bool) -> None:
    tree = tree_of(repository, name, folder=folder)
    for how in LOOKS:
        with pytest.raises(RepositoryError, match="Git itself never writes such|plain names|cannot be read|\\.git"):
            look(repository, how, tree)


@pytest.mark.parametrize("name", ODD)
def test_names_that_are_merely_odd_can_be_looked_at(repository: Repository, name: bytes) -> None:
    tree = tree_of(repository, name, folder=True)
    for how in ("diff", "line_changes", "changed_paths", "lines", "changes", "entries", "with_entries", "draft"):
        look(repository, how, tree)


@pytest.mark.parametrize("folder", [False, True], ids=["file", "folder"])
def test_no_spelling_of_git_is_looked_at(repository: Repository, folder: bool) -> None:
    for name in SPELLINGS:
        tree = tree_of(repository, name.encode(), folder=folder)
        for how in ("changes", "entries", "diff"):
            with pytest.raises(RepositoryError, match="Git itself never writes such|cannot be read"):
                look(repository, how, tree)
        assert not is_safe_path(name)


def test_names_that_only_look_like_git_are_read(repository: Repository) -> None:
    for name in (".gitignore", ".github", "git", "x.git", "~", "\u00e9.git"):
        look(repository, "entries", tree_of(repository, name.encode(), folder=True))


def bomb(repository: Repository, levels: int, entries: int) -> str:
    """A tree in which the same folder is `entries` times in each of so many levels."""
    mode, found = 0o100644, repository.trees.write_blob(b"x\n")
    for _ in range(levels):
        rows = b"".join(b"%o %03d\0%s" % (mode, name, bytes.fromhex(found)) for name in range(entries))
        mode, found = 0o40000, written(repository, rows)
    return found


@pytest.mark.parametrize(("levels", "entries"), [(10, 10), (3000, 1), (190, 2), (201, 2), (2, 1001)])
def test_a_tree_without_end_is_refused_before_it_is_listed(repository: Repository, levels: int, entries: int) -> None:
    tree = bomb(repository, levels, entries)
    for how in LOOKS:
        with pytest.raises(RepositoryError, match="expected a tree of 1,000,000 files and 200 folders"):
            look(repository, how, tree)


@pytest.mark.slow
def test_a_large_tree_is_no_bomb(repository: Repository) -> None:
    assert len(repository.trees.entries(bomb(repository, 2, 300))) == 90_000
    assert len(repository.trees.entries(bomb(repository, 200, 1))) == 1
