"""The options of `evogit run` for its task, run, selector, workers and other hosts."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import click
from msgspec import Struct

from evogit.adopt import find_task
from evogit.cli.locate_run import find_repository, place_to_run, run_before, task_here
from evogit.cli.terminal import Terminal
from evogit.cli.text import escape
from evogit.config import REPOSITORY_FILE, Task, load_repository_task
from evogit.config.custom_classes import check_located, located
from evogit.config.run_settings import DEFAULT_SELECTOR, WorkerSpec
from evogit.config.user_settings import load_user_settings
from evogit.config.values import matches
from evogit.core import ConfigError, NotFoundError, RefusedError, RepositoryError, UsageError
from evogit.credentials import SeedSecrets, secret_files
from evogit.history import History
from evogit.history.context import StoredRun
from evogit.repository import Repository
from evogit.repository.remote import Exchanged
from evogit.review import EarlierStarts
from evogit.review.forking import Fork, plan
from evogit.selection.map_elites import traits_of
from evogit.selection.registry import open_selector, overview

SYNC_EVERY_S = 10.0


class Server(Struct, frozen=True):
    """The server that the user named (none: empty), the name of this host there, and whether it has an own key."""

    name: str
    host: str
    own_key: bool
    sync_every: float


def server_of(remote: str, host: str, *, own_key: bool) -> Server:
    """Return the server of --remote, --host and --own-key. Raise UsageError if they contradict each other."""
    if host and not remote:
        raise UsageError(f"expected --remote NAME with --host {host}, the server on which it is called so")
    if own_key and not remote:
        raise UsageError("expected --remote NAME with --own-key, the server on which others are met")
    return Server(address(remote), host, own_key, SYNC_EVERY_S)


def address(name: str) -> str:
    """Return the server as the user named it; a folder of this machine as an absolute path."""
    is_folder = ("/" in name or name.endswith(".git")) and Path(name).is_dir()
    return str(Path(name).absolute()) if is_folder else name


def meet(terminal: Terminal, target: RunTarget, server: Server, read: Callable[[], RunTarget]) -> RunTarget:
    """Exchange before a run begins or resumes, and `read` again. Raise RefusedError if others may have begun it."""
    repository = place_to_run(target.task, target.repo, target.name)
    if server.host:
        repository.name_clone(server.host)
    if server.own_key:
        repository.keys.make(target.name)
    try:
        exchange(repository, target.name, server.name)
    except RepositoryError as error:
        if target.name not in repository.runs():
            raise RefusedError(
                f"expected to reach the server before a run begins, as others may have begun it: {error}"
            ) from error
        terminal.note(f"{escape(str(error))}; the run continues alone until the server is back", "yellow")
    return read()


def exchange(repository: Repository, run: str, name: str) -> Exchanged:
    """Exchange a run with a server once; git may ask for a password. Raise RepositoryError if that fails."""

    def secrets() -> SeedSecrets | None:
        seed = StoredRun.open(repository, run).history.seed
        if seed is None:
            return None
        own = load_repository_task(repository.path) if (repository.path / REPOSITORY_FILE).is_file() else None
        paths = secret_files(repository.trees.readers(repository.tree_of(seed)))
        return SeedSecrets(seed, [path for path in paths if not matches(path, own.shared if own else ())])

    remote = repository.remote(run, name, secrets)

    def known() -> Callable[[str], bool]:
        if run not in repository.runs():
            return lambda commit: False
        return StoredRun.open(repository, run).history.phylogeny.__contains__

    return asyncio.run(remote.exchange(known, seconds=None, asks=True))


def parse_workers(context: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> tuple[WorkerSpec, ...]:
    """Return workers, with names of the settings resolved."""
    tables = load_user_settings(os.environ).workers if texts else {}
    named = {name: WorkerSpec(table.command, table.jobs, name) for name, table in tables.items()}
    return tuple(WorkerSpec.parse(text, named) for text in texts)


def parse_review(context: click.Context, option: click.Parameter, text: str | None) -> int | None:
    """Return the evaluations after which a person looks, 0 for `stage`. Raise UsageError if it is neither."""
    if text is None or text == "stage":
        return None if text is None else 0
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise UsageError(f"expected --review-every N, evaluations above 0, or `stage`, got {text!r}")
    return int(text)


def list_selectors(context: click.Context, option: click.Parameter, asked: str | None) -> str | None:
    """List all selectors where `help` is asked for."""
    if asked == "help":
        click.echo(f"Selectors for --selector NAME:\n{overview()}")
        context.exit()
    return asked


def selector_before(asked: str | None, task: Task, earlier: EarlierStarts) -> str:
    """Return the selector asked for, else that of before, checked. Raise ConfigError or UsageError if it is wrong."""
    chosen = str(earlier.last.get("selector", DEFAULT_SELECTOR)) if asked is None else located(asked)
    if asked is None:
        check_located(chosen)
    try:
        open_selector(chosen, traits_of(task))
    except (ConfigError, UsageError) as error:
        if asked is not None:
            raise
        raise UsageError(f"{error}\nthe run's last start had this selector; name another with --selector") from error
    return chosen


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
        """Return the paths that no program may read: the task with its evaluator, and the repository."""
        known = [self.repository.path, self.repository.common] if self.repository else []
        return [self.task.folder, *known, *([Path(self.repo)] if self.repo else [])]


def resolve_run(task: str | None, repo: str | None, name: str | None, at: str | None) -> RunTarget:
    """Return the run that is meant, or the fork from `at`; nothing is written. Raise an EvoGitError if it cannot be."""
    if at is not None:
        origin, _, entry = at.rpartition(":")
        return _forked(task, repo, name, entry, origin or None)
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
