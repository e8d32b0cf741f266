"""Git's own files, looked at before Git opens them: it would wait for ever at a pipe that an archive brings along."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from evogit.core import RepositoryError
from evogit.repository.state_folder import read_line

NAMES = (
    *("HEAD", "commondir", "gitdir", "config", "config.worktree", "packed-refs", "shallow", "index"),
    *("info/exclude", "info/attributes", "info/grafts", "info/sparse-checkout", "objects/info/alternates"),
    *("objects/info/commit-graph", "objects/info/commit-graphs/commit-graph-chain", "objects/pack/multi-pack-index"),
)
"""What Git opens by a fixed name in a Git folder."""


def check_repository(place: Path) -> None:
    """Refuse a repository, normal, bare or a worktree, in which one of Git's files is a pipe or a device.

    Raises:
        RepositoryError: naming the file.
    """
    _check_file(place / ".git")
    git_dir = place / ".git" if os.path.lexists(place / ".git") else place
    if git_dir == place and not any(os.path.lexists(place / name) for name in NAMES[:2]):
        return
    with suppress(OSError):
        if git_dir.is_file():
            git_dir = place / read_line(git_dir).removeprefix("gitdir:").strip()
    _check_folder(git_dir)
    with suppress(OSError):
        _check_folder(git_dir / read_line(git_dir / "commondir"))


def check_ignores(folder: Path) -> None:
    """Refuse a checkout whose `.gitignore` Git would wait for.

    Raises:
        RepositoryError: it is a pipe or a device.
    """
    _check_file(folder / ".gitignore")


def _check_folder(git_dir: Path) -> None:
    for name in NAMES:
        _check_file(git_dir / name)


def _check_file(path: Path) -> None:
    """Refuse what is neither a file nor a folder, nor absent; a link to one, or to nothing, is Git's affair.

    Raises:
        RepositoryError: it is something else.
    """
    with suppress(OSError, ValueError):
        mode = os.stat(path).st_mode  # noqa: PTH116 - a Path takes longer
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or path.resolve() == Path(os.devnull)):
            raise RepositoryError(f"expected {path} to be a file, found a pipe or a device; look at it, then remove it")
