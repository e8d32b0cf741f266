"""A small history of its own as a Git bundle: commits of trees that are here, without what is not to be seen."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pygit2
from msgspec import Struct

from evogit.core import RepositoryError
from evogit.repository.commit_writer import notes_tree
from evogit.repository.git import held_folder, passing, run_git
from evogit.repository.messages import clean, clean_title
from evogit.repository.trees import FOLDER, GITLINK, Trees

BEGINNING = 946_684_800  # seconds since 1970: the year 2000; dates are made up, only their order counts
PACKING = {"pack.threads": 1, "pack.window": 0, "pack.compression": 1}  # fast, and the same bytes for the same objects


class Step(Struct, frozen=True, kw_only=True):
    """One commit of a bundle, with the visible files of a tree."""

    tree: str
    author: str
    number: int  # seconds after the beginning
    title: str
    body: str
    after: int | None  # the place of the step before it in the list, None for a first one
    note: str  # what `git log --notes` shows
    branches: Sequence[str]  # which end here


def bundle(common: Path, steps: Sequence[Step], head: str, visible: Callable[[str], bool]) -> bytes:
    """Return a bundle of these commits; HEAD is the branch `head`. Raises RepositoryError: Git or the disk fails."""
    try:
        with held_folder(passing() or Path(tempfile.gettempdir()), "evogit-bundle-") as folder:
            repo = pygit2.init_repository(str(folder), bare=True, initial_head=f"refs/heads/{head}")
            repo.odb.add_disk_alternate(str(common / "objects"))
            for key, value in PACKING.items():
                repo.config[key] = value
            shown, commits, notes = _Shown(repo, visible), list[pygit2.Oid](), dict[str, str]()
            for step in steps:
                author = clean_title(step.author)
                who = pygit2.Signature(f"evogit {author}", f"{author}@evogit.invalid", BEGINNING + step.number, 0)
                message = f"{clean_title(step.title)}\n\n{clean(step.body)}\n"
                parents: list[str | pygit2.Oid] = [] if step.after is None else [commits[step.after]]
                commits.append(repo.create_commit(None, who, who, message, shown.tree(step.tree), parents))
                notes[str(commits[-1])] = clean(step.note) + "\n"
                for branch in step.branches:
                    repo.create_reference(f"refs/heads/{branch}", commits[-1])
            who = pygit2.Signature("evogit", "evogit@evogit.invalid", BEGINNING, 0)
            tree = notes_tree(Trees(repo), None, notes)
            repo.create_commit("refs/notes/commits", who, who, "Scores as notes\n", tree, [])
            made = run_git(folder, "bundle", "create", "-q", "-", "--all", elsewhere=common / "objects")
    except (OSError, KeyError, ValueError, pygit2.GitError) as error:
        raise RepositoryError(f"cannot make a bundle of {len(steps)} commits: {error}; make room") from error
    return made.stdout


class _Shown:
    """Trees without what is not visible, and without submodules, whose commits are elsewhere."""

    def __init__(self, repo: pygit2.Repository, visible: Callable[[str], bool]) -> None:
        self._repo = repo
        self._visible = visible
        self._known: dict[tuple[pygit2.Oid, str], pygit2.Oid | None] = {}

    def tree(self, tree: str) -> pygit2.Oid:
        return self._below(pygit2.Oid(hex=tree), "") or self._written(b"")

    def _below(self, tree: pygit2.Oid, prefix: str) -> pygit2.Oid | None:
        if (tree, prefix) not in self._known:
            self._known[tree, prefix] = self._folder(tree, prefix)
        return self._known[tree, prefix]

    def _folder(self, tree: pygit2.Oid, prefix: str) -> pygit2.Oid | None:
        rows, same = list[bytes](), True
        for item in self._repo[tree].peel(pygit2.Tree):
            name = item.raw_name or b""
            path, kept = prefix + os.fsdecode(name), None
            if item.filemode == FOLDER:
                kept = self._below(item.id, f"{path}/")
            elif item.filemode != GITLINK and self._visible(path):
                kept = item.id
            same &= kept == item.id
            if kept:
                rows.append(b"%o %s\0%s" % (item.filemode, name, kept.raw))
        if same:
            return tree
        return self._written(b"".join(rows)) if rows else None

    def _written(self, content: bytes) -> pygit2.Oid:
        return self._repo.odb.write(pygit2.enums.ObjectType.TREE, content)
