"""Git's own files, looked at before Git opens them: it would wait for ever at a pipe that an archive brings along.

It would also walk through links among refs, and so through all of the disk.
"""

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
    """Refuse a repository, bare or not, in which one of Git's files is a pipe or a device, or a folder of refs a link.

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
    refs = git_dir / "refs"
    way = Path(os.path.realpath(refs))
    if refs.is_symlink() and not (way.name == "refs" and os.path.lexists(way.with_name("HEAD"))):
        raise _linked(refs)
    for place, folders, _ in os.walk(refs):
        for name in folders:
            if os.path.islink(f"{place}/{name}"):  # noqa: PTH114 - a Path takes longer
                raise _linked(Path(place, name))


def _linked(path: Path) -> RepositoryError:
    return RepositoryError(f"expected a folder of Git's at {path}, found a link; remove it with `rm`")


def _check_file(path: Path) -> None:
    """Refuse what is neither a file nor a folder, nor absent; a link to one, or to nothing, is Git's affair.

    Raises:
        RepositoryError: it is something else.
    """
    with suppress(OSError, ValueError):
        mode = os.stat(path).st_mode  # noqa: PTH116 - a Path takes longer
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or os.path.realpath(path) == os.devnull):
            raise RepositoryError(f"expected {path} to be a file, found a pipe or a device; look at it, then remove it")
