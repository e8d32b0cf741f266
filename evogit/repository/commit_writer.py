"""Writes EvoGit's own commits, without libgit2's detours."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pygit2

from evogit.repository.faults import written


class CommitWriter:
    """Writes commits to a repository whose objects are in the folder `common`; no ref moves.

    libgit2 reads the tree and the parents of a commit before it writes it, and looks for new packs: half of what a
    commit takes. Here all that is asked is whether they are there, as somebody may prune what nothing refers to yet.
    """

    def __init__(self, repo: pygit2.Repository, common: Path) -> None:
        self._repo = repo
        syncs = "core.fsyncObjectFiles"
        self._files = loose_objects(common / "objects", sync=syncs in repo.config and repo.config.get_bool(syncs))

    def write(self, what: str, who: pygit2.Signature, message: str, tree: str, parents: Sequence[str]) -> str:
        """The id of a commit that `who` wrote at the moment of the signature, in UTC; `what` it is, for people.

        Raises:
            RepositoryError: it cannot be written, or its tree or a parent is not there.
        """
        return str(written(what, self._repo, partial(self._write, who, message, tree, parents)))

    def _write(self, who: pygit2.Signature, message: str, tree: str, parents: Sequence[str]) -> pygit2.Oid:
        for each in (tree, *parents):
            if each not in self._repo:
                raise pygit2.GitError(f"the object {each} is gone")
        text = raw_commit(f"{who.name} <{who.email}> {who.time} +0000", message, tree, parents)
        return self._files.write(pygit2.enums.ObjectType.COMMIT, text)


def loose_objects(folder: Path, *, sync: bool = False) -> pygit2.Odb:
    """Objects below a folder that are files of their own; who writes one there looks for no packs first."""
    found = pygit2.Odb()
    found.add_backend(pygit2.OdbBackendLoose(str(folder), -1, sync), 1)
    return found


def raw_commit(who: str, message: str, tree: str, parents: Sequence[str]) -> bytes:
    """A commit as Git stores it; `who` wrote and committed it: name, address, seconds since the epoch, and zone."""
    lines = [f"tree {tree}", *(f"parent {parent}" for parent in parents), f"author {who}", f"committer {who}"]
    return ("\n".join(lines) + f"\n\n{message}").encode()
