"""Objects that anybody may have written, read so that whatever is wrong with one has a name.

Git takes commits that libgit2 cannot parse, and journals and refs of others may name anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pygit2

from evogit.core import Proposed, RepositoryError

MISSING = "is missing"
"""The fault of an object that is not here."""


def object_size(repo: pygit2.Repository, name: str) -> int:
    """Bytes of an object, told by its header; 0 where it cannot be read."""
    with suppress(KeyError, pygit2.GitError):
        return int(repo.odb.read_header(name)[1])
    return 0


def read_object(repo: pygit2.Repository, name: str | pygit2.Oid) -> pygit2.Object | str:
    """Return an object, or what is wrong with it."""
    try:
        return repo.get(name) or MISSING
    except pygit2.GitError as error:
        return f"cannot be read: {error}"


def read_commit(repo: pygit2.Repository, name: str) -> pygit2.Commit | str:
    """Return a commit, or what is wrong with it."""
    found = read_object(repo, name)
    return found if isinstance(found, pygit2.Commit | str) else "is not a commit"


def mismatch(repo: pygit2.Repository, event: object) -> str:
    """Return why an entry is not believed: its candidate is not a commit with the tree that it names.

    Empty for other entries, and if the candidate is not here.
    """
    if not isinstance(event, Proposed):
        return ""
    found = read_commit(repo, event.candidate)
    if isinstance(found, str):
        return "" if found == MISSING else f"its candidate {event.candidate[:10]} {found}"
    if str(found.tree_id) == event.tree:
        return ""
    return f"its candidate {event.candidate[:10]} has the tree {found.tree_id}, and it says {event.tree}"


@contextmanager
def named_errors(what: str) -> Iterator[None]:
    """Report what libgit2 cannot read, and names that are no UTF-8, as an error about `what`.

    Raises:
        RepositoryError: it cannot be read.
    """
    try:
        yield
    except (pygit2.GitError, ValueError) as error:
        raise RepositoryError(f"{what} cannot be read: {error}") from error
