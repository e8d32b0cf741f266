"""What libgit2 and the system say about a failed write or a missing object, as a sentence with a way on."""

from __future__ import annotations

import errno
import os
import re
import tempfile
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from typing import TypeVar

import pygit2

from evogit.core import RepositoryError
from evogit.repository.objects import named_errors, read_object
from evogit.repository.paths import UnfitChangeError

ROOM = 1 << 20  # free bytes below which a disk counts as full
FILES = 64  # files that must be free on a disk that has room for so many only
ATTEMPTS = 5  # times that objects are written: a `git gc` beside us removes their folders

T = TypeVar("T")

WAIT_FOR_ROOM: ContextVar[Callable[[Exception], bool]] = ContextVar("WAIT_FOR_ROOM", default=lambda error: False)
"""What waits where the disk is full, and says whether to write again; an engine does, a command fails at once."""


def has_room(folder: str | Path) -> bool:
    """Whether what is written to the disk of a folder can be expected to be there."""
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize >= ROOM and (not disk.f_files or disk.f_favail >= FILES)


def written(what: str, repo: pygit2.Repository, write: Callable[[], T]) -> T:
    """Repeat `write`, which writes objects only, while the disk is full. Raises RepositoryError: it cannot write."""
    attempt = 0
    while True:
        try:
            result = write()
            is_there = not isinstance(result, pygit2.Oid) or repo.odb.exists(result)
            if not is_there:  # a full quota says why as seldom as libgit2 does
                with tempfile.TemporaryFile(dir=repo.path, buffering=0) as file:
                    file.write(b"room?")
            if is_there and has_room(repo.path):
                return result
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except (pygit2.GitError, OSError) as error:
            if WAIT_FOR_ROOM.get()(error):
                continue
            attempt += 1
            if attempt == ATTEMPTS:
                raise RepositoryError(
                    f"cannot write {what} to the repository: {str(error).strip(': ')}; make room or repair it, then "
                    "run again: nothing that was recorded is lost"
                ) from error


def found_tree(repo: pygit2.Repository, name: str) -> pygit2.Tree:
    """The tree with this id, or of this commit. Raises RepositoryError: it is missing, damaged or without end."""
    found = read_object(repo, name)
    if not isinstance(found, pygit2.Tree | pygit2.Commit):
        wrong = found if isinstance(found, str) else "is another object"
        raise RepositoryError(f"expected the tree or commit {name:.80}, which {wrong} (a partial clone?)")
    with named_errors(f"the tree of {name:.80}"):
        tree = found.peel(pygit2.Tree)
    if len(_known) > MOST_REMEMBERED:
        _known.clear()
    if _extent(repo, tree.id, 1) is None:
        raise UnfitChangeError(
            f"expected a tree of {MOST_FILES:,} files and {DEEPEST} folders in one another at most, got {tree.id}"
        )
    return tree


def advice(error: str) -> str:
    """What to do about a repository that libgit2 refuses with these words."""
    if "object format" in error:
        return "SHA-256 repositories are not supported; use a SHA-1 one"
    if "extension" in error:
        return "its format (reftable or a partial clone, say) is not supported; use a plain full clone"
    if "owned" in error:
        return "name it in Git's safe.directory, or run as its owner"
    return "check it with `git fsck`"


MOST_FILES, DEEPEST = 1_000_000, 200  # files, and folders in one another: more than any project has
MOST_REMEMBERED = 100_000  # folders whose extent is remembered
_ENTRY = re.compile(rb"(\d+) [^\0]+\0(.{20})", re.DOTALL)
_FOLDERS = (b"40000", b"040000")
_known: dict[pygit2.Oid, tuple[int, int]] = {}


def _extent(repo: pygit2.Repository, folder: pygit2.Oid, level: int) -> tuple[int, int] | None:
    """Return the number of files below a folder and the depth of its folders; None if there are too many."""
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
