"""The options of `evogit run` for its task, run, selector, workers and other hosts."""

from __future__ import annotations

import asyncio
import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from msgspec import Struct

from evogit.adopt import find_task
from evogit.cli.locate_run import find_repository, place_to_run, run_before, task_here
from evogit.cli.options.shared import Command
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
from evogit.review.forking import Fork, make, plan
from evogit.selection.map_elites import traits_of
from evogit.selection.registry import open_selector, overview


class Server(Struct, frozen=True):
    """The server that a person named (none: empty), what this host is called there, and if it believes itself alone."""

    name: str
    host: str
    own_key: bool = False


def with_remote(command: Command) -> Command:
    """Give a command `--remote`, `--host` and `--sync-every`, as `server` and settings of a run."""

    @click.option(
        "--remote",
        default="",
        metavar="NAME",
        help="Work with engines on other hosts through this Git server: a remote of the repository, or an address.",
    )
    @click.option("--host", default="", metavar="NAME", help="Name of this clone on the server; remembered.")
    @click.option(
        "--own-key",
        is_flag=True,
        help="With --remote: begin with a key of this clone's own, so that what others have is evaluated here first.",
    )
    @click.option("--sync-every", type=float, default=10.0, hidden=True)
    @functools.wraps(command)
    def wrapped(*arguments: Any, remote: str, host: str, own_key: bool, **rest: Any) -> Any:
        if host and not remote:
            raise UsageError(f"expected --remote NAME with --host {host}, the server on which it is called so")
        if own_key and not remote:
            raise UsageError("expected --remote NAME with --own-key, the server on which others are met")
        name = address(remote)
        return command(*arguments, server=Server(name, host, own_key), remote=name, **rest)

    return wrapped


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


def with_workers(command: Command) -> Command:
    """Give a command `--trust`, and `--workers` as specifications in which names of the settings are resolved."""

    @click.option(
        "--workers",
        multiple=True,
        metavar="COMMAND[:N]",
        help="Evaluate N at a time there, too, such as 'ssh gpu1 evogit worker:4', ray:HOST:PORT:8, "
        "or a name of your settings.",
    )
    @click.option(
        "--trust",
        type=click.Choice(["believe", "verify"]),
        default="believe",
        show_default=True,
        help="Believe workers, or evaluate a tenth of what they say, and what seems best, again here.",
    )
    @functools.wraps(command)
    def wrapped(workers: tuple[str, ...], **rest: Any) -> Any:
        tables = load_user_settings(os.environ).workers if workers else {}
        known = {name: WorkerSpec(table.command, table.jobs, name) for name, table in tables.items()}
        return command(workers=tuple(WorkerSpec.parse(text, known) for text in workers), **rest)

    return wrapped


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
        """Return the paths that no program may read: the task with its evaluator, and the repository."""
        known = [self.repository.path, self.repository.common] if self.repository else []
        return [self.task.folder, *known, *([Path(self.repo)] if self.repo else [])]

    def write_fork(self) -> None:
        """Write the fork, if it is one."""
        if self.fork is not None and self.repository is not None:
            make(self.repository, self.fork)


def with_origin(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command `--at RUN:ENTRY`, as `origin`."""

    @click.option(
        "--at",
        metavar="[RUN:]ENTRY",
        help="Fork: begin the run --name from another one, as it was after a candidate (`best`, an id), at an entry of "
        "its journal (an id), or when N were evaluated (`@N`). RUN:ENTRY names one of several runs.",
    )
    @functools.wraps(command)
    def wrapped(*arguments: Any, at: str | None, **rest: Any) -> Any:
        run, _, entry = (at or "").rpartition(":")
        return command(*arguments, origin=Origin(entry or at, run or None), **rest)

    return wrapped


def resolve_run(task: str | None, repo: str | None, name: str | None, origin: Origin) -> RunTarget:
    """Return the run that is meant; nothing is written. Raise an EvoGitError if there is none, or a fork is there."""
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
