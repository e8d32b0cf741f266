"""A run's journals read entry by entry, whatever is wrong with them: for who looks for damage, not for who reads."""

from __future__ import annotations

from collections.abc import Iterator

import pygit2
from msgspec import Struct, field

from evogit.core import Entry, EvoGitError
from evogit.repository import journal_records
from evogit.repository.commit_text import committer_of, message_of
from evogit.repository.foreign_entries import Allowance, TooLargeError
from evogit.repository.journal import counts
from evogit.repository.objects import read_commit

EMPTY = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
"""The id of the empty tree, which all entries have."""


class Chain(Struct, frozen=True, kw_only=True):
    """A host's journal as it was found.

    Attributes:
        host: whose it is.
        entries: those that count and could be read, oldest first.
        unsealed: the ids of those behind the newest seal, the last one first; none where this clone has no key.
        sealed: the newest entry with a seal, or the last one where there is no key; empty where there is none.
        wrong: what is wrong with the others, in sentences.
    """

    host: str
    entries: list[Entry] = field(default_factory=list)
    unsealed: list[str] = field(default_factory=list)
    sealed: str = ""
    wrong: list[str] = field(default_factory=list)


def read_chain(repo: pygit2.Repository, host: str, tip: str, key: bytes, allowance: Allowance | None = None) -> Chain:
    """A host's chain, from its tip to its beginning or to what cannot be read, or only at too much cost."""
    wrong, entries, unsealed, sealed = list[str](), list[Entry](), list[str](), ""
    commit: str | None = tip
    after: Entry | None = None
    while commit is not None:
        try:
            if allowance:
                allowance.check(commit)
        except TooLargeError as error:
            wrong.append(f"nothing before the entry {commit} was looked at: {error}")
            break
        found = read_commit(repo, commit)
        if isinstance(found, str):
            wrong.append(f"the entry {commit} {found}, so nothing before it can be read")
            break
        if not sealed and not counts(repo, key, host, commit):
            unsealed.append(commit)
        else:
            sealed = sealed or commit
            wrong += (f"the entry {commit} {what}" for what in _unlike_an_entry(found, host))
            entry = _entry(found, wrong)
            if entry and after and entry.seq >= after.seq:
                wrong.append(f"the clock of the entry {after.id}, {after.seq}, does not go on from {entry.seq} before")
            after = entry or after
            entries += [entry] if entry else []
        commit = str(found.parent_ids[0]) if found.parent_ids else None
    return Chain(host=host, entries=entries[::-1], unsealed=unsealed, sealed=sealed, wrong=wrong)


def _unlike_an_entry(found: pygit2.Commit, host: str) -> Iterator[str]:
    """What no engine would have written."""
    if committer_of(found) != host:
        yield f"in the journal of {host} is of {committer_of(found)!r}"
    if len(found.parent_ids) > 1:
        yield f"has {len(found.parent_ids)} parents; a journal is one chain"
    if str(found.tree_id) != EMPTY:
        yield f"has the tree {found.tree_id}; entries have the empty one"


def _entry(found: pygit2.Commit, wrong: list[str]) -> Entry | None:
    try:
        return journal_records.entry(str(found.id), committer_of(found), found.commit_time, message_of(found))
    except EvoGitError as error:
        wrong.append(f"the entry {found.id}: {error}")
        return None
