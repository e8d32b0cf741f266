"""The files of a seed: as a tree in a repository, and packed once as the base of its candidates."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable

from evogit.config import Task
from evogit.core import BaseFiles
from evogit.repository import Repository


def write_seed(repository: Repository, task: Task) -> str:
    """The tree of a task's folder `seed`, written into a repository.

    Raises:
        ConfigError: when a symbolic link leads out of the seed.
        UsageError: when the seed is a commit.
    """
    files = task.seed_files()
    contents: dict[str, bytes | None] = {path: content for path, (content, _) in files.items()}
    return repository.trees.write(None, contents, {path: mode for path, (_, mode) in files.items()})


async def packed_seed(
    repository: Repository, tree: str, task: Task, wanted: Callable[[str], bool] | None = None
) -> BaseFiles:
    """The seed's files that are evaluated, or `wanted`, as the base of candidates; beside the loop, as it takes long.

    What differs in a candidate is only what `task.is_visible`: a command is given what is withheld as the seed has it.
    """

    def pack() -> BaseFiles:
        trees = Repository.open(repository.git_dir).trees  # libgit2's handles are not for two threads
        archive = trees.tar(tree, wanted or task.is_judged)
        return BaseFiles(hashlib.sha256(archive).hexdigest(), archive)

    return await asyncio.to_thread(pack)
