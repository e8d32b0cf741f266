"""Git's own files, checked before Git opens them: it would wait at a pipe, and write through links."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
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

CHECKOUT = (".gitignore", ".gitattributes", ".gitmodules")  # the same at the root of a checkout
WRITTEN = ("refs", "logs", "packed-refs", "index", "shallow")  # what Git writes or removes through links


def folder_of(place: Path) -> Path:
    """Return the Git folder of a place. Raises RepositoryError: its `.git` file names what is no path."""
    git_dir = place / ".git"
    if not os.path.lexists(git_dir):
        return Path(os.path.realpath(place))
    with suppress(OSError):
        if git_dir.is_file():
            git_dir = place / read_line(git_dir).removeprefix("gitdir:").strip()
    return Path(os.path.realpath(git_dir))


def tree_around(git_dir: Path) -> Path | None:
    """Return the working tree in which a Git folder lies that is not its own, so that a commit may have brought it."""
    for place in git_dir.parents:
        if os.path.lexists(place / ".git"):
            return None if git_dir.is_relative_to(folder_of(place)) else place
    return None


def check_files(place: Path) -> list[Path]:
    """Refuse a repository with a pipe or a device as a file; return its Git folders. Raises RepositoryError."""
    check_file(place / ".git")
    git_dir = folder_of(place)
    if not os.path.lexists(place / ".git") and not any(os.path.lexists(place / name) for name in NAMES[:2]):
        return []
    folders = [git_dir]
    check_file(git_dir / "commondir")
    with suppress(OSError):
        folders.append(git_dir / read_line(git_dir / "commondir"))
    for path in (*(place / name for name in CHECKOUT), *(folder / name for folder in folders for name in NAMES)):
        check_file(path)
    return folders


def check_repository(place: Path) -> None:
    """Refuse that, and links or pipes among what Git writes. Raises RepositoryError: naming the file."""
    for path in (folder / name for folder in check_files(place) for name in WRITTEN):
        for strange in [path] if path.is_symlink() else _strange(path):
            raise RepositoryError(
                f"expected files and folders of Git's at {strange}, found a link, a pipe, or what cannot be listed; "
                "look at it, then remove it"
            )


def is_borrowing(common: Path) -> bool:
    """Return whether a Git folder has objects of another repository, or may have."""
    objects = common / "objects"
    return os.path.lexists(objects / "info" / "alternates") or objects.is_symlink() or any(_strange(objects))


def _strange(folder: Path) -> Iterator[Path]:
    """Yield what is neither a file nor a folder below a folder, and the folders that cannot be listed."""
    left = [folder]
    while left:
        folder = left.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        left.append(Path(entry.path))
                    elif not entry.is_file(follow_symlinks=False):
                        yield Path(entry.path)
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError:
            yield folder


def check_file(path: Path) -> None:
    """Refuse what is neither a file nor a folder, nor absent; a link to one, or to nothing, is Git's affair."""
    with suppress(OSError, ValueError):
        mode = os.stat(path).st_mode  # noqa: PTH116 - a Path takes longer
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or os.path.realpath(path) == os.devnull):
            raise RepositoryError(f"expected {path} to be a file, found a pipe or a device; look at it, then remove it")
