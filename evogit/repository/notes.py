"""A projection of evaluations as Git notes, for plain `git log --notes='evogit/*'`. Never read back."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial

import pygit2

from evogit.repository.faults import written
from evogit.repository.trees import Trees


def notes_tree(trees: Trees, base: str | None, notes: Mapping[str, str]) -> str:
    """The tree of notes (commit id -> text) in Git's layout with one level of folders, changed from `base`.

    Only notes whose text differs from the one in `base` are written, so growing by one costs about one.
    """
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
