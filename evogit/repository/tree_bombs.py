"""Trees that are small to store and endless to list, as a folder may be in one many times: refused before that."""

from __future__ import annotations

import re

import pygit2

from evogit.repository.objects import read_object
from evogit.repository.paths import UnfitChangeError

MOST_FILES, DEEPEST = 1_000_000, 200
"""Files of a tree, and folders in one another: more than any project has, and few enough to be listed."""

MOST_REMEMBERED = 100_000
"""Folders whose extent is remembered."""

_ENTRY = re.compile(rb"(\d+) [^\0]+\0(.{20})", re.DOTALL)
_FOLDERS = (b"40000", b"040000")
_known: dict[pygit2.Oid, tuple[int, int]] = {}


def check_bounds(repo: pygit2.Repository, tree: pygit2.Tree) -> None:
    """Refuse a tree of too many files, or too deep a one; each folder is looked into once.

    Raises:
        UnfitChangeError: saying what was expected.
    """
    if len(_known) > MOST_REMEMBERED:
        _known.clear()
    if _extent(repo, tree.id, 1) is None:
        raise UnfitChangeError(
            f"expected a tree of {MOST_FILES:,} files and {DEEPEST} folders in one another at most, got {tree.id}"
        )


def _extent(repo: pygit2.Repository, folder: pygit2.Oid, level: int) -> tuple[int, int] | None:
    """How many files are below a folder, and how many folders in one another; None where it is too much."""
    if folder not in _known and level <= DEEPEST:
        found = read_object(repo, folder)
        entries = _ENTRY.findall(found.read_raw()) if isinstance(found, pygit2.Tree) else []
        folders = [name for mode, name in entries if mode in _FOLDERS]
        files, depth = len(entries) - len(folders), 0
        for name in folders:
            below = _extent(repo, pygit2.Oid(raw=name), level + 1)
            if below is None:
                return None
            files, depth = files + below[0], max(depth, below[1])
        _known[folder] = files, depth + 1
    files, depth = _known.get(folder, (0, DEEPEST))
    return None if files > MOST_FILES or level - 1 + depth > DEEPEST else (files, depth)
