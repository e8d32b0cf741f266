"""Bounds the journals that no key of this clone vouches for: a push of a megabyte may hold gigabytes.

Sizes are looked up before anything is unpacked.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import pygit2

from evogit.core import RefusedError, RepositoryError
from evogit.repository import journal_records
from evogit.repository.commit_text import message_of
from evogit.repository.objects import object_size, read_commit

ORDINARY = 4 << 10
"""Bytes of an entry that are read in any case; most entries have one thousand."""

MOST_EXCESS = 8 << 20
"""Bytes beyond that in all entries of a run; their values take ten times as much memory."""

MOST_CLAIM = 64 << 10
"""Bytes of an entry of a stranger's that is decoded while an engine waits for it."""

MOST_CLAIMS = 512 << 10
"""Bytes of the entries of one stranger that are unpacked meanwhile."""


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
        """Count an entry.

        Raises:
            TooLargeError: there is no room for it.
        """
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
