"""The files of a seed: where they are, as a tree in a repository, and packed once as the base of its candidates."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable
from pathlib import Path

from evogit.config import Task
from evogit.core import BaseFiles
from evogit.evaluation.seed_check import check_tree
from evogit.repository import Repository

logger = logging.getLogger(__name__)


def write_seed(repository: Repository, task: Task) -> str:
    """The tree of a task's folder `seed`, written into a repository.

    Raises:
        ConfigError: when a symbolic link leads out of the seed.
        UsageError: when the seed is a commit.
    """
    files = task.seed_files()
    contents: dict[str, bytes | None] = {path: content for path, (content, _) in files.items()}
    return repository.trees.write(None, contents, {path: mode for path, (_, mode) in files.items()})


def seed_of(task: Task, scratch: Path) -> tuple[Repository, str]:
    """Where the seed is, and its tree; one that is a folder is written to a repository in `scratch`.

    Raises:
        ConfigError: the task cannot be run on it.
    """
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
    """The seed's files that are evaluated, or `wanted`, as the base of candidates; beside the loop, as it takes long.

    What differs in a candidate is only what `task.is_visible`: a command is given what is withheld as the seed has it.
    """

    def pack() -> BaseFiles:
        trees = Repository.open(repository.path).trees  # libgit2's handles are not for two threads
        archive = trees.tar(tree, wanted or task.is_judged)
        return BaseFiles(hashlib.sha256(archive).hexdigest(), archive)

    return await asyncio.to_thread(pack)
