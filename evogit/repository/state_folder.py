"""EvoGit's own files beside the refs, opened by descriptor: no symbolic link below `.git/evogit` is followed.

An unpacked archive brings its `.git/evogit` along, so a stranger may have made any name there. Folders and regular
files are used; links, pipes, sockets and devices are refused with a sentence, and nothing waits for them.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from evogit.core import RepositoryError

FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # opening a pipe must not wait
MAX_LINE_BYTES = 8192

_FOREIGN = (errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENXIO, errno.ENODEV)
"""Errors from opening what is neither a folder nor a regular file as one."""


class OpenFolder(Struct, frozen=True):
    """An open folder; every name is that of an entry in it, never a path."""

    path: Path
    descriptor: int

    def names(self) -> list[str]:
        """Names of all entries, sorted."""
        return sorted(os.listdir(self.descriptor))  # noqa: PTH208 - a descriptor

    def open(self, name: str, flags: int = os.O_RDONLY, mode: int = 0o666) -> int:
        """Open a regular file without another name. Raises RepositoryError: it is something else; OSError."""
        try:
            descriptor = os.open(plain(name), flags | FILE_FLAGS, mode, dir_fd=self.descriptor)
        except OSError as error:
            raise _explained(error, self.path / name, "a regular file") from error
        about = os.fstat(descriptor)
        writable = flags & (os.O_WRONLY | os.O_RDWR)
        if not stat.S_ISREG(about.st_mode) or (writable and about.st_nlink > 1):
            os.close(descriptor)
            raise _foreign(self.path / name, "a regular file")
        return descriptor

    def holds(self, name: str) -> bool:
        """Return whether the entry exists, whatever it is."""
        try:
            os.stat(plain(name), dir_fd=self.descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    def modified(self, name: str) -> float:
        """Return when a file was written last, in seconds since 1970."""
        return os.stat(plain(name), dir_fd=self.descriptor, follow_symlinks=False).st_mtime

    def read(self, name: str, limit: int) -> bytes:
        """Read at most `limit` bytes. Raises RepositoryError: larger, or not a regular file; OSError: unreadable."""
        with os.fdopen(self.open(name), "rb", buffering=0) as file:
            content = file.read(limit + 1)
        if len(content) > limit:
            raise RepositoryError(
                f"expected at most {limit} bytes in {self.path / name}, found more: EvoGit did not write this file; "
                "look at it, then remove it"
            )
        return content

    def replace(self, name: str, content: Iterable[bytes | memoryview], mode: int = 0o666) -> None:
        """Write a file, in the place of whatever had the name, which is not opened."""
        with self._draft(name, content, mode) as draft:
            os.rename(draft, name, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)  # noqa: PTH104 - below it

    def write_once(self, name: str, content: bytes, mode: int = 0o666) -> None:
        """Write a file unless the name is taken: of several processes the first one wins."""
        with self._draft(name, [content], mode) as draft, suppress(FileExistsError):
            os.link(draft, name, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)

    @contextmanager
    def _draft(self, name: str, content: Iterable[bytes | memoryview], mode: int) -> Iterator[str]:
        """Write a file under a name of its own, which is removed at the end."""
        draft = f"{plain(name)}~{os.urandom(4).hex()}"  # no run, host or engine has such a name
        try:
            with os.fdopen(self.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
                file.writelines(content)
            yield draft
        except OSError as error:
            raise _explained(error, self.path / name, "a regular file") from error
        finally:
            self.remove(draft)

    def remove(self, name: str) -> None:
        """Remove a file, or the link of that name and not what it leads to; an absent one is no error."""
        with suppress(FileNotFoundError):
            os.unlink(plain(name), dir_fd=self.descriptor)

    def remove_folder(self, name: str) -> None:
        """Remove an empty folder. Raises OSError: it is not empty, or not a folder."""
        os.rmdir(plain(name), dir_fd=self.descriptor)

    def remove_tree(self, name: str) -> None:
        """Remove a folder with all that lies in it, as far as that goes; of a link nothing."""
        with suppress(OSError):
            shutil.rmtree(plain(name), dir_fd=self.descriptor)


class StateFolder(Struct, frozen=True):
    """`.git/evogit` below the resolved Git folder `common`, or the folder below it that `parts` name."""

    common: Path
    parts: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        """Return the path, for messages and for programs that are given one."""
        return Path(self.common, "evogit", *self.parts)

    def below(self, *parts: str) -> StateFolder:
        """A folder in this one."""
        return StateFolder(self.common, self.parts + parts)

    @contextmanager
    def opened(self, *, make: bool = False, mode: int = 0o777) -> Iterator[OpenFolder]:
        """Open the folder, or `make` it. Raises RepositoryError: one above is something else; OSError: it cannot be."""
        path = self.common / "evogit"
        descriptor = _open_folder(None, path, make=make, mode=mode if not self.parts else 0o777)
        try:
            for part in self.parts:
                path = path / plain(part)
                below = _open_folder(descriptor, path, make=make, mode=mode if part is self.parts[-1] else 0o777)
                os.close(descriptor)
                descriptor = below
            yield OpenFolder(path, descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def open_folder(path: Path, *, mode: int = 0o777) -> Iterator[OpenFolder]:
    """Open a folder at a path that the user chose, where links are theirs; made if it is absent."""
    path.mkdir(parents=True, exist_ok=True, mode=mode)
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield OpenFolder(path, descriptor)
    finally:
        os.close(descriptor)


def read_line(path: Path) -> str:
    """Read one of Git's own small files. Raises RepositoryError: it is not small or regular; OSError: it cannot be."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise _foreign(path, "a regular file")
        content = file.read(MAX_LINE_BYTES + 1)
    if len(content) > MAX_LINE_BYTES or b"\0" in content:
        raise RepositoryError(f"expected one line of at most {MAX_LINE_BYTES} bytes in {path}; see `git fsck`")
    return os.fsdecode(content).strip()


def plain(name: str) -> str:
    """Return a name that is one step of a path, and neither `.` nor `..`. Raises RepositoryError: it is not."""
    if not name or name in (".", "..") or "/" in name or "\0" in name:
        raise RepositoryError(f"expected the name of a file or folder below .git/evogit, got {name[:100]!r}")
    return name


def _open_folder(above: int | None, path: Path, *, make: bool, mode: int) -> int:
    name = str(path) if above is None else path.name
    try:
        try:
            return os.open(name, FOLDER_FLAGS, dir_fd=above)
        except FileNotFoundError:
            if not make:
                raise
        with suppress(FileExistsError):
            os.mkdir(name, mode, dir_fd=above)
        return os.open(name, FOLDER_FLAGS, dir_fd=above)
    except OSError as error:
        raise _explained(error, path, "a folder") from error


def _explained(error: OSError, path: Path, kind: str) -> Exception:
    if error.errno in _FOREIGN:
        return _foreign(path, kind)
    return OSError(error.errno, error.strerror, str(path))


def _foreign(path: Path, kind: str) -> RepositoryError:
    found = "something else"
    with suppress(OSError):
        mode = path.lstat().st_mode
        found = f"a link to {str(path.readlink())!r}" if stat.S_ISLNK(mode) else _KINDS.get(stat.S_IFMT(mode), found)
    return RepositoryError(
        f"expected {path} to be {kind}, found {found}: EvoGit did not make it; look at it, then remove it with `rm`"
    )


_KINDS = {
    stat.S_IFREG: "a file that has other names, too",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}
