"""The files of a seed: checked, as a tree in a repository, and packed once as the base of its candidates."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable
from pathlib import Path

from evogit.config import REPOSITORY_FILE, TASK_FILE, Task
from evogit.core import BaseFiles, ConfigError
from evogit.repository import GITLINK, Repository
from evogit.repository.paths import named
from evogit.text import one_line

logger = logging.getLogger(__name__)

LFS_POINTER = b"version https://git-lfs.github.com/spec/"
"""The beginning of a Git LFS pointer of any version."""
LONGEST_POINTER = 1024
"""Bytes of a pointer of Git LFS, at most."""


def write_seed(repository: Repository, task: Task) -> str:
    """Write the folder `seed` as a tree. Raises ConfigError if a link leads out of it, UsageError if it is a commit."""
    files = task.seed_files()
    contents: dict[str, bytes | None] = {path: content for path, (content, _) in files.items()}
    return repository.trees.write(None, contents, {path: mode for path, (_, mode) in files.items()})


def seed_of(task: Task, scratch: Path) -> tuple[Repository, str]:
    """Return the seed's repository, created in `scratch` for a folder, and tree. Raises ConfigError if it is unfit."""
    if task.seed is None:
        repository = Repository.discover(task.folder)
        tree = repository.tree_of(repository.head())
    else:
        repository = Repository.create(scratch)
        tree = write_seed(repository, task)
    for note in check_tree(task, repository, tree):
        logger.warning("%s", note)
    return repository, tree


async def packed_seed(
    repository: Repository, tree: str, task: Task, wanted: Callable[[str], bool] | None = None
) -> BaseFiles:
    """Pack the seed's judged (or `wanted`) files as the base of candidates, in a thread because it takes long."""

    def pack() -> BaseFiles:
        trees = Repository.open(repository.path).trees  # libgit2's handles are not for two threads
        archive = trees.tar(tree, wanted or task.is_judged)
        return BaseFiles(hashlib.sha256(archive).hexdigest(), archive)

    return await asyncio.to_thread(pack)


def check_tree(task: Task, repository: Repository, tree: str) -> list[str]:
    """Refuse a tree that the task cannot be run on; return notes for the user, one sentence each.

    Raises:
        ConfigError: when nothing in it is editable, it holds pointers of Git LFS, or is larger than a sandbox's disk.
        RepositoryError: when files of it are not in this repository.
    """
    trees, where = repository.trees, task.folder / (TASK_FILE if task.seed else REPOSITORY_FILE)
    entries = trees.whole(tree)
    used = [entry for entry in entries if task.is_visible(entry.path) or task.is_judged(entry.path)]
    plain = [entry for entry in used if entry.is_file]
    task = task.screened(trees, tree)
    task.check_seed([entry.path for entry in entries if entry.is_file])
    sizes = {entry: trees.size(entry.blob) for entry in used if entry.mode != GITLINK}
    small = [entry for entry in plain if sizes[entry] <= LONGEST_POINTER]
    if pointers := [entry.path for entry in small if trees.blob(entry.blob).startswith(LFS_POINTER)]:
        raise ConfigError(
            f"{where}: {named(pointers)}: pointers of Git LFS, whose content EvoGit does not fetch; name them in "
            "excluded, such as excluded = "
            f'["{pointers[0]}"], if evaluation does not need them, or commit the files themselves'
        )
    size = sum(size for entry, size in sizes.items() if task.is_judged(entry.path))
    if size > task.limits.disk:
        largest = [entry.path for entry in sorted(sizes, key=lambda entry: -sizes[entry])]
        raise ConfigError(
            f"{where}: the seed's files are {_megabytes(size)}, more than the {_megabytes(task.limits.disk)} that "
            f"sandbox.disk allows; raise that, or name in excluded what is not needed ({named(largest)})"
        )
    hidden = "credentials, which no agent is shown or may change; name in shared the files that agents may see"
    secret = [one_line(path) for path in task.withheld_for_credentials]
    notes = [f"{named(secret)}: {hidden}"] if secret else []
    modules = [entry.path for entry in entries if entry.mode == GITLINK]
    absent = "submodules that were not fetched, so sandboxes lack them; `git submodule update --init` brings them"
    return [*notes, *([f"{named(modules)}: {absent}"] if modules else [])]


def _megabytes(size: int) -> str:
    return f"{size / 1024**2:.1f} MB"
