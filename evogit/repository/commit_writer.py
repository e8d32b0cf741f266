"""Writes EvoGit's own commits, without libgit2's detours."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import pygit2

from evogit.repository.faults import written
from evogit.repository.trees import Trees


class CommitWriter:
    """Writes commits, and moves no ref. libgit2 reads tree and parents and looks for packs: half of the time."""

    def __init__(self, repo: pygit2.Repository, common: Path) -> None:
        self._repo = repo
        syncs = "core.fsyncObjectFiles"
        self._files = loose_objects(common / "objects", sync=syncs in repo.config and repo.config.get_bool(syncs))

    def write(self, what: str, who: pygit2.Signature, message: str, tree: str, parents: Sequence[str]) -> str:
        """The id of a commit by `who`. Raises RepositoryError: it cannot be written, or lacks its tree or a parent."""

        def write() -> pygit2.Oid:
            for each in (tree, *parents):
                if each not in self._repo:
                    raise pygit2.GitError(f"the object {each} is gone")
            text = raw_commit(f"{who.name} <{who.email}> {who.time} +0000", message, tree, parents)
            return self._files.write(pygit2.enums.ObjectType.COMMIT, text)

        return str(written(what, self._repo, write))


def loose_objects(folder: Path, *, sync: bool = False) -> pygit2.Odb:
    """Objects below a folder that are files of their own; who writes one there looks for no packs first."""
    found = pygit2.Odb()
    found.add_backend(pygit2.OdbBackendLoose(str(folder), -1, sync), 1)
    return found


def raw_commit(who: str, message: str, tree: str, parents: Sequence[str]) -> bytes:
    """A commit as Git stores it; `who` wrote and committed it: name, address, seconds since the epoch, and zone."""
    lines = [f"tree {tree}", *(f"parent {parent}" for parent in parents), f"author {who}", f"committer {who}"]
    return ("\n".join(lines) + f"\n\n{message}").encode()


def notes_tree(trees: Trees, base: str | None, notes: Mapping[str, str]) -> str:
    """The tree of notes (commit id -> text) with one level of folders; what `base` has is not written again."""
    known = {entry.path: entry.blob for entry in trees.entries(base)} if base else {}
    fresh: dict[str, bytes | None] = {}
    for commit, text in notes.items():
        path, content = f"{commit[:2]}/{commit[2:]}", text.encode(errors="replace")
        if known.get(path) != str(pygit2.hash(content)):
            fresh[path] = content
    return trees.write(base, fresh)


def notes_commit(repo: pygit2.Repository, trees: Trees, tip: str | None, notes: Mapping[str, str]) -> str:
    """A commit of the notes on top of `tip`; `tip` itself when nothing changed."""
    old = str(repo[tip].peel(pygit2.Tree).id) if tip else None
    tree = notes_tree(trees, old, notes)
    if tip and tree == old:
        return tip
    who = pygit2.Signature("evogit", "evogit@evogit.invalid", int(time.time()), 0)
    parents = [tip] if tip else []
    write = partial(repo.create_commit, None, who, who, "Evaluations as notes\n", tree, parents)
    return str(written("notes", repo, write))
