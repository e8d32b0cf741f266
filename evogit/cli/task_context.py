"""A task that a person means, the repository of its run, and what candidates of it start from."""

from __future__ import annotations

from evogit.adopt import find_task
from evogit.cli.locate_run import run_before, task_here
from evogit.config import Task
from evogit.core import NotFoundError
from evogit.history import History
from evogit.repository import Repository


def task_context(task: str | None, repo: str | None, name: str | None) -> tuple[Task, Repository, History]:
    """The task that is meant, its repository, and what its run did so far (nothing where there is none yet).

    Raises:
        NotFoundError: there is no repository.
    """
    found, run = task_here(repo, name) if task is None else (find_task(task), name)
    repository, history = run_before(found, repo, run or found.name)
    if repository is None:
        raise NotFoundError(f"expected a repository with a run of {found.name}; name it with -C DIR")
    return found, repository, history


def seed_tree(task: Task, repository: Repository, history: History) -> str:
    """The tree that candidates start from: the run's seed, else HEAD.

    Raises:
        NotFoundError: neither is there.
    """
    if history.seed:
        return history.phylogeny[history.seed].tree
    if task.seed is not None:
        raise NotFoundError(f"the run {history.run} has no seed yet; begin it with `evogit run`")
    return repository.tree_of(repository.head())
