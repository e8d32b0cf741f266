"""What `evogit run` starts from: a task, its repository, and what its run, or the one it is forked from, did so far."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from msgspec import Struct

from evogit.adopt import find_task
from evogit.cli.locate_run import find_repository, run_before, task_here
from evogit.cli.renamed import retired_option
from evogit.config import Task
from evogit.core import NotFoundError, UsageError
from evogit.history import History
from evogit.repository import Repository
from evogit.review.forking import Fork, make, plan


class Origin(Struct, frozen=True):
    """The moment `at` of a run (`run`, None: the only one) that a new run begins from; an empty one: of no run."""

    at: str | None
    run: str | None


class RunTarget(Struct, frozen=True):
    """A run before it begins or goes on; `repository` is None where it is yet to be created."""

    task: Task
    name: str
    repo: str | None
    repository: Repository | None
    history: History
    fork: Fork | None = None

    @property
    def private(self) -> list[Path]:
        """What no program may read: the task with its evaluator, and the repository."""
        known = [self.repository.path, self.repository.common] if self.repository else []
        return [self.task.folder, *known, *([Path(self.repo)] if self.repo else [])]

    def write_fork(self) -> None:
        """Write the fork, if it is one."""
        if self.fork is not None and self.repository is not None:
            make(self.repository, self.fork)


def with_origin(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command `--at ENTRY` and `--fork-of RUN`, as `origin`."""

    @click.option(
        "--at",
        metavar="[RUN:]ENTRY",
        help="Fork: begin the run --name from another one, as it was after a candidate (`best`, an id), at an entry of "
        "its journal (an id), or when N were evaluated (`@N`). RUN:ENTRY names one of several runs.",
    )
    @retired_option("--fork-of", metavar="RUN", instead="--at RUN:ENTRY names the run")
    @functools.wraps(command)
    def wrapped(*arguments: Any, at: str | None, fork_of: str | None, **rest: Any) -> Any:
        if fork_of is not None and at is None:
            raise UsageError(
                f"expected --at ENTRY with --fork-of {fork_of}, the moment to begin from, such as --at best"
            )
        run, _, entry = (at or "").rpartition(":")
        return command(*arguments, origin=Origin(entry or at, fork_of or run or None), **rest)

    return wrapped


def resolve_run(task: str | None, repo: str | None, name: str | None, origin: Origin) -> RunTarget:
    """The run that is meant; nothing is written.

    Raises:
        ConfigError: the task is wrong.
        NotFoundError: there is no such task, repository, run or moment.
        RefusedError: the run that is to be forked from another one is there already.
        UsageError: what is said does not tell which run is meant.
    """
    if origin.at is not None:
        return _forked(task, repo, name, origin.at, origin.run)
    if task is None:
        found, run = task_here(repo, name)
        repo = str(find_repository(repo).path)
    else:
        found = find_task(task)
        run = name or found.name
    return RunTarget(found, run, repo, *run_before(found, repo, run))


def _forked(task: str | None, repo: str | None, name: str | None, at: str, run: str | None) -> RunTarget:
    if name is None:
        raise UsageError("expected --name NEW with --at, as the fork is a run of its own")
    if task is None:
        repository: Repository | None = find_repository(repo)
    else:
        found = find_task(task)
        repository, _ = run_before(found, repo, run or found.name)
    if repository is None:
        raise NotFoundError("expected a repository with the run to begin from; name it with -C DIR")
    fork = plan(repository, run, at, name)
    where = str(repository.path)
    if task is None:
        found, _ = task_here(where, fork.origin)
    return RunTarget(found, name, where, repository, fork.history, fork)
