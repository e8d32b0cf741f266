"""Evaluates work that is not committed: a folder as the candidate that it would be. Nothing is journalled."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from evogit.config import Task
from evogit.contained import file_at
from evogit.core import Evaluation, Evidence, Files, RefusedError
from evogit.evaluation.evaluator import Evaluator
from evogit.evaluation.inputs import Inputs
from evogit.evaluation.seed_files import packed_seed
from evogit.repository import EXECUTABLE, FILE, LINK, Repository, TreeEntry, tracked_below


class Work(Struct, frozen=True, kw_only=True):
    """A folder against the seed: the `tree` that a candidate would have, and the paths that make it.

    `changed` are editable and differ; `protected` differ though no candidate may change them; `left_out` are new though
    no candidate may add them (other paths than editable ones, links, devices). Neither of the two is in the tree.
    """

    tree: str
    changed: tuple[str, ...]
    protected: tuple[str, ...]
    left_out: tuple[str, ...]


class _Found(Struct, frozen=True):
    """A file or link; its content, which may be huge, is read when it is asked for."""

    folder: Path
    path: str
    mode: int
    size: int

    def content(self) -> bytes:
        if self.mode == LINK:
            return os.fsencode((self.folder / self.path).readlink())
        return file_at(self.folder, self.path)[0]


async def read_work(repository: Repository, task: Task, seed: str, folder: Path) -> Work:
    """Compare a folder with the seed's tree, as far as Git would track it. Withheld paths do not count.

    Raises:
        RefusedError: when it is more than a sandbox may hold.
        RepositoryError: when Git cannot look at it, or its paths make no tree.
    """
    folder, room = folder.resolve(), task.limits.disk
    before = {entry.path: entry for entry in repository.trees.entries(seed) if entry.is_file or entry.mode == LINK}
    paths = {*await tracked_below(repository.git_dir, folder), *before}
    changes, modes = dict[str, bytes | None](), dict[str, int]()
    protected, left_out = list[str](), list[str]()
    for path, old, new in _differences(repository, folder, sorted(filter(task.is_visible, paths)), before):
        plain = (old is None or old.is_file) and (new is None or new.mode in (FILE, EXECUTABLE))
        if plain and task.is_editable(path):
            room -= new.size if new else 0
            if room < 0:
                raise RefusedError(
                    f"expected changes of {task.limits.disk:,} bytes at most, as [sandbox] disk allows, got more with "
                    f"{path}; remove what does not belong there, or have .gitignore name it"
                )
            changes[path] = new.content() if new else None
            modes |= {path: new.mode} if new else {}
        else:
            (protected if old else left_out).append(path)
    tree = repository.trees.write(seed, changes, modes) if changes else seed
    return Work(tree=tree, changed=tuple(changes), protected=tuple(protected), left_out=tuple(left_out))


async def judge_work(
    repository: Repository, task: Task, seed: str, work: Work, *, split: str, provider: str, drawing: Inputs
) -> tuple[Evaluation, Evidence]:
    """Evaluate the tree as bred from the tree `seed`. Raises EvoGitError: the sandbox cannot be used."""
    files = await candidate_files(repository, task, seed, work.tree)
    async with Evaluator(task, provider=provider, jobs=1, drawing=drawing) as evaluator:
        return await evaluator.evaluate(work.tree, files, split=split)


async def candidate_files(repository: Repository, task: Task, seed: str, tree: str) -> Files:
    """The files that the evaluator's sandbox has of a tree: changes to those of the seed."""
    base = await packed_seed(repository, seed, task)
    changed, removed = repository.trees.changes(seed, tree, task.is_visible)
    return Files(changed, removed, base)


def _differences(
    repository: Repository, folder: Path, paths: list[str], before: dict[str, TreeEntry]
) -> Iterator[tuple[str, TreeEntry | None, _Found | None]]:
    real, trees = dict[Path, bool](), repository.trees
    for path in paths:
        parent = (folder / path).parent
        inside = real.setdefault(parent, parent.resolve() == parent)  # links to folders are not followed
        old, new = before.get(path), _look(folder, path) if inside else None
        same = old and new and old.mode == new.mode and trees.size(old.blob) == new.size
        if (old or new) and not (same and old and new and trees.blob(old.blob) == new.content()):
            yield path, old, new


def _look(folder: Path, path: str) -> _Found | None:
    try:
        about = (folder / path).lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISLNK(about.st_mode):
        return _Found(folder, path, LINK, about.st_size)
    if not stat.S_ISREG(about.st_mode):
        return None
    return _Found(folder, path, EXECUTABLE if about.st_mode & 0o100 else FILE, about.st_size)
