"""`--remote`: engines on several hosts, which meet on a Git server."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from msgspec import Struct

from evogit.cli.locate_run import place_to_run
from evogit.cli.options.shared import Command
from evogit.cli.renamed import retired_option
from evogit.cli.run_target import RunTarget
from evogit.cli.terminal import Terminal
from evogit.cli.text import escape
from evogit.config import REPOSITORY_FILE, load_repository_task
from evogit.config.values import matches
from evogit.core import RefusedError, RepositoryError, UsageError
from evogit.credentials import SeedSecrets, secret_files
from evogit.history.context import StoredRun
from evogit.repository import Repository
from evogit.repository.remote import Exchanged


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
    @retired_option("--sync-every", type=float, default=10.0, instead="hosts exchange every 10 s")
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
    """What a person named as a server; a folder of this machine is the same wherever git is started."""
    is_folder = ("/" in name or name.endswith(".git")) and Path(name).is_dir()
    return str(Path(name).absolute()) if is_folder else name


def meet(terminal: Terminal, target: RunTarget, server: Server, read: Callable[[], RunTarget]) -> RunTarget:
    """Before a run begins or goes on here: what other hosts did, so that it does not begin twice; `read` again.

    Raises:
        RefusedError: it is not known whether the run is there already.
        UsageError: the host cannot be called so.
    """
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
        terminal.note(f"{escape(str(error))}; the run goes on alone until the server is back", "yellow")
    return read()


def exchange(repository: Repository, run: str, name: str) -> Exchanged:
    """Exchange a run with a server once, where somebody may be asked for a password.

    Raises:
        RepositoryError: the server was not reached, or refused something.
    """

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
