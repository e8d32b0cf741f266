"""The chains of `keep`, which hold candidates and evidence of a run, read back, and what was thinned of them."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection, Iterator
from contextlib import suppress

import pygit2
from msgspec import Struct, field

from evogit.core import EvoGitError
from evogit.events import Entry
from evogit.repository import journal_records
from evogit.repository.journal import counts
from evogit.repository.objects import (
    Allowance,
    TooLargeError,
    committer_of,
    message_of,
    object_size,
    parents_of,
    read_commit,
    read_object,
)
from evogit.repository.trees import FOLDER

LEFT = "keep what gc left"
"""How the message of a commit begins that holds, in one tree, all evidence that was left when some was thinned."""

THINNED = "evidence"  # the file of a `thinned` ref: ids of evidence trees, one a line
MAX_THINNED_BYTES = 16 << 20  # of that file: 400,000 ids; more is not read, as another host may have written it
_IDS = re.compile(rb"^[0-9a-f]{40}$", re.MULTILINE)


class Kept(Struct, frozen=True, kw_only=True):
    """The content of chains of `keep`: evidence `trees`, `commits` with ancestors, the `chain`, and what is `wrong`."""

    trees: set[str] = field(default_factory=set)
    commits: set[str] = field(default_factory=set)
    chain: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


class Keeping:
    """The chains of all hosts of one run, as they are here."""

    def __init__(self, repo: pygit2.Repository, run: str) -> None:
        self._repo = repo
        self._run = run
        self._thinned = dict[str, str](), frozenset[str]()

    def tips(self, kind: str = "keep") -> dict[str, str]:
        """Host -> the commit that its ref of some kind names."""
        folder = f"refs/evogit/{self._run}/{kind}/"
        names = [name for name in self._repo.references if name.startswith(folder)]
        return {name.removeprefix(folder): str(self._repo.references[name].target) for name in names}

    def read(self, tips: Collection[str]) -> Kept:
        """What the chains that end with these commits hold."""
        kept = Kept()
        for tip in tips:
            self._walk(tip, kept)
        return kept

    def _walk(self, tip: str, kept: Kept) -> None:
        commit: str | None = tip
        seen, left = set(kept.chain), ""  # forks share theirs
        while commit is not None and commit not in seen:
            found = read_commit(self._repo, commit)
            if isinstance(found, str):
                kept.wrong.append(f"the commit {commit} of the chain of `keep` {found}")
                return
            kept.chain.append(commit)
            parents = [str(parent) for parent in found.parent_ids]
            parent = read_commit(self._repo, parents[0]) if parents else None
            before = parents[0] if isinstance(parent, str) or (parent and is_link(parent)) else None
            kept.commits.update(parents[1:] if before else parents)
            try:
                tree = str(found.tree_id)
                if not found.raw_message.startswith(LEFT.encode()):  # which holds what thinning left
                    kept.trees.add(tree)
                elif tree != left:  # a row of them has the same
                    for folder in self._repo[tree].peel(pygit2.Tree):  # `ab/cdef...`
                        kept.trees.update(str(each.id) for each in self._repo[folder.id].peel(pygit2.Tree))
                    left = tree
            except (KeyError, pygit2.GitError) as error:
                kept.wrong.append(f"the commit {commit} of the chain of `keep` lacks a tree: {error}")
            commit = before

    def reached(self, kept: Kept, wanted: Collection[str]) -> set[str]:
        """Those of the wanted commits that are held."""
        missing, found = set(wanted), set[str]()
        todo = deque(kept.commits)
        seen = set(kept.commits)
        while todo and missing:
            name = todo.popleft()
            if name in missing:
                missing.discard(name)
                found.add(name)
            for parent in parents_of(self._repo, name):
                if parent not in seen:
                    seen.add(parent)
                    (todo.appendleft if parent in missing else todo.append)(parent)  # a person's past comes last
        return found

    def thinned(self) -> frozenset[str]:
        """The evidence trees that were given up, on whatever host that was."""
        tips = self.tips("thinned")
        if tips != self._thinned[0]:
            self._thinned = tips, frozenset(name for tip in tips.values() for name in self.listed(tip))
        return self._thinned[1]

    def listed(self, tip: str | None) -> list[str]:
        """Return the trees that one host gave up; none if the list cannot be read or is too large."""
        with suppress(KeyError, pygit2.GitError):
            entry = self._repo[tip].peel(pygit2.Tree)[THINNED] if tip else None
            if entry and object_size(self._repo, str(entry.id)) <= MAX_THINNED_BYTES:
                return [name.decode() for name in _IDS.findall(entry.peel(pygit2.Blob).data)]
        return []


class Whole:
    """Looks whether all of a tree is there; what was seen is not looked at again."""

    def __init__(self, repo: pygit2.Repository) -> None:
        self._repo = repo
        self._whole = set[str]()

    def lacks(self, tree: str) -> str:
        """The first object that a tree lacks, in words; empty where it is whole."""
        if tree in self._whole:
            return ""
        found = read_object(self._repo, tree)
        if not isinstance(found, pygit2.Tree):
            return f"the tree {tree} {found if isinstance(found, str) else 'is another object'}"
        for item in found:  # a submodule's commit is elsewhere
            if item.filemode == FOLDER and (lack := self.lacks(str(item.id))):
                return lack
            if isinstance(item, pygit2.Blob) and item.id not in self._repo:
                return f"the file {item.name!r} ({item.id}) is missing"
        self._whole.add(tree)
        return ""


def is_link(commit: pygit2.Commit) -> bool:
    """Whether a commit belongs to a chain of `keep`; a candidate's committer is `evogit AGENT`, or a person."""
    who = commit.committer
    ours = who.raw_email == who.raw_name + b"@evogit.invalid" and b" " not in who.raw_name
    return ours and commit.raw_message.startswith(b"keep ")


EMPTY = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"  # the id of the empty tree, which all entries have


class Chain(Struct, frozen=True, kw_only=True):
    """The journal of a host as it lies there."""

    host: str
    entries: list[Entry] = field(default_factory=list)  # those that count and could be read, oldest first
    unsealed: list[str] = field(default_factory=list)  # ids behind the newest seal, the last first; none without a key
    sealed: str = ""  # the newest with a seal, or the last one without a key
    wrong: list[str] = field(default_factory=list)  # what is wrong with the others


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
            entry = None
            try:
                entry = journal_records.entry(commit, committer_of(found), found.commit_time, message_of(found))
            except EvoGitError as error:
                wrong.append(f"the entry {commit}: {error}")
            if entry and after and entry.seq >= after.seq:
                wrong.append(f"the clock of the entry {after.id}, {after.seq}, does not go on from {entry.seq} before")
            after = entry or after
            entries += [entry] if entry else []
        commit = str(found.parent_ids[0]) if found.parent_ids else None
    return Chain(host=host, entries=entries[::-1], unsealed=unsealed, sealed=sealed, wrong=wrong)


def _unlike_an_entry(found: pygit2.Commit, host: str) -> Iterator[str]:
    if committer_of(found) != host:
        yield f"in the journal of {host} is of {committer_of(found)!r}"
    if len(found.parent_ids) > 1:
        yield f"has {len(found.parent_ids)} parents; a journal is one chain"
    if str(found.tree_id) != EMPTY:
        yield f"has the tree {found.tree_id}; entries have the empty one"
