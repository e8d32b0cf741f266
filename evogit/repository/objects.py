"""Objects that anybody may have written, read so that whatever is wrong with one has a name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import pygit2

from evogit.core import RefusedError, RepositoryError
from evogit.events import Proposed
from evogit.repository import journal_records

MISSING = "is missing"  # the fault of an object that is not here


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


def parents_of(repo: pygit2.Repository, commit: str) -> tuple[str, ...]:
    """The parents of a commit; none where it cannot be read, or a shallow clone ends."""
    found = read_commit(repo, commit)
    return () if isinstance(found, str) else tuple(map(str, found.parent_ids))


def mismatch(repo: pygit2.Repository, event: object) -> str:
    """Return why an entry is not believed: its candidate is not a commit with its tree. Empty if it is not here."""
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
    """Report what libgit2 cannot read as a RepositoryError about `what`."""
    try:
        yield
    except (pygit2.GitError, ValueError) as error:
        raise RepositoryError(f"{what} cannot be read: {error}") from error


def message_of(commit: pygit2.Commit) -> str:
    """The message, as UTF-8, which all of ours are."""
    return commit.raw_message.decode(errors="replace")


def committer_of(commit: pygit2.Commit) -> str:
    """The committer's name, which in a journal is the host."""
    return commit.committer.raw_name.decode(errors="replace")


ORDINARY = 4 << 10  # bytes of an entry that are read in any case; most entries have one thousand
MOST_EXCESS = 8 << 20  # bytes beyond that in all entries of a run; their values take ten times as much memory
MOST_CLAIM = 64 << 10  # bytes of an entry of a stranger's that is decoded while an engine waits for it
MOST_CLAIMS = 512 << 10  # bytes of the entries of one stranger that are unpacked meanwhile


class TooLargeError(RepositoryError):
    """Foreign entries are too large to be read, from one on that comes after so many others."""

    def __init__(self, entries: int) -> None:
        self.entries = entries
        super().__init__(
            f"expected entries of {ORDINARY >> 10} KiB and {MOST_EXCESS >> 20} MiB beyond that in all, got more, and "
            "no key of this clone vouches for them"
        )


@dataclass(slots=True)
class Allowance:
    """The bytes of foreign entries of a run that may still be read."""

    repo: pygit2.Repository
    left: int = MOST_EXCESS
    entries: int = 0

    def check(self, commit: str) -> None:
        """Count an entry. Raises TooLargeError: there is no room for it."""
        excess = max(object_size(self.repo, commit) - ORDINARY, 0)
        self.left -= excess
        self.entries += 1
        if excess and self.left < 0:
            raise TooLargeError(self.entries)


def _chain(repo: pygit2.Repository, tip: str, most: int) -> Iterator[pygit2.Commit]:
    """Yield the last commits of a chain, newest first, until one is missing or all together are too large."""
    commit, left = tip, MOST_CLAIMS
    for _ in range(most):
        left -= object_size(repo, commit)
        link = read_commit(repo, commit) if left >= 0 else ""
        if isinstance(link, str):
            return
        yield link
        if not link.parent_ids:
            return
        commit = str(link.parent_ids[0])


def latest(repo: pygit2.Repository, tip: str, most: int) -> Iterator[object]:
    """Yield the events of the last entries of a chain that anybody may have written; what is none is left out."""
    for link in _chain(repo, tip, most):
        if len(link.raw_message) <= MOST_CLAIM:
            with suppress(RefusedError, RepositoryError):
                yield journal_records.decode(message_of(link))[0]


def held(repo: pygit2.Repository, tip: str, most: int) -> frozenset[str]:
    """Return the small commits that the last links of a chain of `keep` name."""
    named = {str(parent) for link in _chain(repo, tip, most) for parent in link.parent_ids}
    return frozenset(each for each in named if object_size(repo, each) <= MOST_CLAIM)
