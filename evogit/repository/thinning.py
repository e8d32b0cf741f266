"""Evidence given up: the chain of `keep` written anew without it, and a ref that says what is gone.

Nothing else goes: candidates, and what no entry of the journal names, are kept by the new chain as by the old one.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from pathlib import Path

import pygit2
from msgspec import Struct

from evogit.core import RepositoryError
from evogit.repository import refs
from evogit.repository.commit_writer import CommitWriter
from evogit.repository.faults import written
from evogit.repository.journal import entry_commit
from evogit.repository.keeping import LEFT, THINNED, Keeping, Kept
from evogit.repository.objects import read_commit
from evogit.repository.trees import FOLDER, Trees

AT_ONCE = 200
"""Parents of one commit: candidates from which no other one that is kept was bred."""


class Thinner(Struct, frozen=True, kw_only=True):
    """Gives up evidence that one clone keeps for a run.

    Killed at any moment, it leaves the old chain or the new one, and nothing that is not said to be gone is.
    """

    repo: pygit2.Repository
    commits: CommitWriter
    common: Path
    trees: Trees
    run: str
    host: str

    def thin(self, gone: Collection[str], why: str) -> None:
        """Let go of the evidence trees `gone`; `why`, a line, says what was asked.

        Raises:
            RepositoryError: the chain of `keep` is damaged.
        """
        refs.retry(partial(self._tell, gone, why))  # first: what is gone is known to be
        refs.retry(partial(self._rewrite, frozenset(gone)))

    def _tell(self, gone: Collection[str], why: str) -> bool:
        """Add to the ref that says what is gone."""
        ref = f"refs/evogit/{self.run}/thinned/{self.host}"
        tip = refs.target(self.repo, ref)
        known = {*gone, *Keeping(self.repo, self.run).listed(tip)}
        listed = "".join(f"{tree}\n" for tree in sorted(known)).encode()
        commit = self._commit(
            f"{why}\n", self.trees.write(None, {THINNED: listed}), [tip] if tip else [], int(time.time())
        )
        return refs.swap(self.repo, self.common, ref, commit, tip)

    def _rewrite(self, gone: frozenset[str]) -> bool:
        """Put a chain without this evidence in the place of the one that is there, unless that grew meanwhile."""
        ref = f"refs/evogit/{self.run}/keep/{self.host}"
        tip = refs.target(self.repo, ref)
        if tip is None:
            return True
        kept = Keeping(self.repo, self.run).read([tip])
        for commit in kept.commits:
            if isinstance(wrong := read_commit(self.repo, commit), str):
                kept.wrong.append(f"the candidate {commit} {wrong}")
        if kept.wrong:
            raise RepositoryError(f"{kept.wrong[0]}; see `evogit doctor runs`")
        return refs.swap(self.repo, self.common, ref, self._left(kept, kept.trees - gone), tip)

    def _left(self, kept: Kept, trees: Collection[str]) -> str:
        """A new chain that holds these trees and all commits that the old one held; its last commit."""
        folders: dict[str, dict[str, str]] = {}
        for tree in trees:
            folders.setdefault(tree[:2], {})[tree[2:]] = tree
        left = self._folder({name: self._folder(inner) for name, inner in folders.items()})
        ends, message = self._ends(kept.commits), f"{LEFT}, of {len(kept.chain)}\n"
        parents = list[str]()
        for at in range(0, max(len(ends), 1), AT_ONCE):
            some = ends[at : at + AT_ONCE]
            named = [*parents, *(str(end.id) for end in some)]
            parents = [self._commit(message, left, named, max(some[-1].commit_time, 0) if some else 0)]
        return parents[0]

    def _ends(self, commits: Collection[str]) -> Sequence[pygit2.Commit]:
        """Those of some commits that hold all of them, as no other one of them has it as a parent, the oldest first.

        Whoever walks down the chain has few commits in hand then, if each link is as old as what it holds: Git puts
        them into a list in the order of their dates, which takes minutes with a hundred thousand.
        """
        found = [self.repo[commit].peel(pygit2.Commit) for commit in commits]
        parents = {str(parent) for commit in found for parent in commit.parent_ids}
        return sorted((each for each in found if str(each.id) not in parents), key=lambda each: each.commit_time)

    def _folder(self, inner: Mapping[str, str]) -> str:
        """A tree of trees with names of one length, in the order of which they are; one that is there is not written.

        Else libgit2 would make the pack in which it is young, and nothing in there could be swept (sweeping.py).
        """
        rows = [b"%o %s\0%s" % (FOLDER, name.encode(), bytes.fromhex(tree)) for name, tree in sorted(inner.items())]
        content = b"".join(rows)
        tree = hashlib.sha1(b"tree %d\0%s" % (len(content), content)).hexdigest()
        if tree not in self.repo:
            written("what gc left", self.repo, partial(self.repo.odb.write, pygit2.enums.ObjectType.TREE, content))
        return tree

    def _commit(self, message: str, tree: str, parents: list[str], date: int) -> str:
        return entry_commit(self.commits, self.host, message, tree, parents, date)
