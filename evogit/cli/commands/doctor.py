"""`evogit doctor`: whether everything that a run needs is in place, and what to do where it is not."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import click
from msgspec import Struct, to_builtins
from rich.text import Text

from evogit.cli.docker import docker_answers, docker_client
from evogit.cli.locate_run import find_repository
from evogit.cli.options.shared import sandbox_option, with_repo, with_terminal
from evogit.cli.terminal import Terminal, table
from evogit.cli.text import count, escape
from evogit.core import EvoGitError, NotFoundError, RepositoryError
from evogit.repository import Repository
from evogit.repository.git import git_version
from evogit.sandbox import Environment

OLDEST_GIT = (2, 38)
"""The first Git with `merge-tree --write-tree`."""

LEAST_SPACE = 1024**3
"""Bytes free below which a long run may fill the disk."""


class Finding(Struct, frozen=True):
    """One line of the report."""

    level: Literal["ok", "warn", "fail"]
    what: str
    said: str


@click.command()
@sandbox_option
@with_repo
@with_terminal
def doctor(repo: str | None, terminal: Terminal, sandbox: str) -> None:
    """Look at Python, Git, the sandbox, disk space and the repository; exit code 1 when something fails."""
    _tell_of_image(terminal, sandbox)
    found = [_python(), _git(), *_sandbox(sandbox), _languages(), _space(Path(repo or ".")), *_repository(repo)]
    if terminal.json:
        terminal.data({"schema": 1, "checks": [to_builtins(finding) for finding in found]})
    else:
        styles = {"ok": "green", "warn": "yellow", "fail": "bold red"}
        terminal.show(table(((Text(f.level, styles[f.level]), f.what, escape(f.said)) for f in found), "lll"))
    if any(finding.level == "fail" for finding in found):
        sys.exit(1)


def _tell_of_image(terminal: Terminal, name: str) -> None:
    """Say what takes long: Docker's image for sandboxes is made before the first one opens."""
    if name not in ("auto", "docker") or not docker_answers():
        return
    from evogit.sandbox.docker.images import find_image

    with docker_client() as client:
        missing = find_image(client, Environment()) is None
    if missing:
        terminal.note("making the sandbox's image, once, which may take minutes; `evogit sandbox build` does only that")


def _python() -> Finding:
    return Finding("ok", "Python", f"{sys.version.split()[0]}, {sys.executable}")


def _git() -> Finding:
    try:
        said = git_version()
    except RepositoryError:
        return Finding("fail", "Git", "there is no git command on the PATH; install git 2.38 or newer")
    version = re.search(r"(\d+)\.(\d+)", said)
    if version is None or (int(version[1]), int(version[2])) < OLDEST_GIT:
        return Finding("fail", "Git", f"{said}: merges need 2.38 or newer; upgrade git")
    return Finding("ok", "Git", said)


def _sandbox(name: str) -> Iterator[Finding]:
    from evogit.sandbox.providers import self_check

    for what, well, said in self_check(name):
        yield Finding("ok" if well else "fail", what, said)


def _languages() -> Finding:
    from evogit.source import languages

    if not languages.is_installed():
        return Finding("ok", "languages", f"merges read Python only; {languages.EXTRA} adds other languages")
    amount = len(set(languages.GRAMMARS.values()))
    return Finding("ok", "languages", f"merges read Python and {amount} other languages")


def _space(path: Path) -> Finding:
    here = path if path.exists() else Path()
    free = shutil.disk_usage(here).free
    said = f"{free / 1e9:.1f} GB free at {here.resolve()}"
    if free < LEAST_SPACE:
        return Finding("warn", "disk", f"{said}; 10,000 small candidates take up to 0.4 GB until they are packed")
    return Finding("ok", "disk", said)


def _repository(repo: str | None) -> Iterator[Finding]:
    try:
        repository = find_repository(repo)
    except NotFoundError as error:
        if repo is not None:
            yield Finding("fail", "repository", str(error))
        else:
            yield Finding("ok", "repository", "none here; `evogit run TASK` makes one")
        return
    except EvoGitError as error:
        yield Finding("fail", "repository", str(error))
        return
    runs = repository.runs()
    yield Finding("ok", "repository", f"{repository.path}, {count(len(runs), 'run')}: {', '.join(runs) or 'none'}")
    yield Finding("ok", "host", f"{repository.host} is this clone's name in journals")
    yield _locks(repository)
    for run in runs:
        yield _run(repository, run)


def _locks(repository: Repository) -> Finding:
    locks = [path.relative_to(repository.common).as_posix() for path in repository.common.glob("refs/**/*.lock")]
    if locks:
        said = (
            f"{', '.join(locks[:3])} left by a dead process, it seems; `evogit run` removes its own after some seconds"
        )
        return Finding("warn", "locks", said)
    return Finding("ok", "locks", "no stale ref locks")


def _run(repository: Repository, run: str) -> Finding:
    from evogit.review import open_run

    try:
        history = open_run(repository, run).history
    except EvoGitError as error:
        return Finding("fail", f"run {run}", str(error))
    alive = repository.engines(run).alive()
    state = f"{count(len(alive), 'engine')} at work" if alive else "no engine at work"
    said = f"{count(len(history.phylogeny), 'candidate')}, {state}"
    if history.pending and not alive:
        return Finding("warn", f"run {run}", f"{said}; {len(history.pending)} await evaluation: `evogit run` goes on")
    return Finding("ok", f"run {run}", said)
