"""The files of a seed as the base of its candidates: packed once, sent once."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable

from evogit.config import Task
from evogit.repository import Repository
from evogit.sandbox import Base


async def seed_files(
    repository: Repository, tree: str, task: Task, wanted: Callable[[str], bool] | None = None
) -> Base:
    """The seed's files that are evaluated, or `wanted`, as the base of candidates; beside the loop, as it takes long.

    What differs in a candidate is only what `task.is_visible`: a command is given what is withheld as the seed has it.
    """

    def pack() -> Base:
        trees = Repository.open(repository.git_dir).trees  # libgit2's handles are not for two threads
        archive = trees.tar(tree, wanted or task.is_judged)
        return Base(hashlib.sha256(archive).hexdigest(), archive)

    return await asyncio.to_thread(pack)
