"""Refs moved by compare-and-swap only, and the lock files that a killed process leaves behind."""

from __future__ import annotations

import ctypes
import errno
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from itertools import chain
from pathlib import Path

import pygit2

from evogit.core import RepositoryError
from evogit.repository.faults import WAIT_FOR_ROOM

STALE_AFTER = 10.0  # seconds after which a ref lock must be a dead process's; a live one holds it for a millisecond

_renameat2 = cache(lambda: getattr(ctypes.CDLL(None), "renameat2", None))  # looking takes longer than calling
EXCHANGE = 2  # of renameat2(2): two files change names
HERE = -100  # for renameat2(2): a relative path is one from the working directory


def target(repo: pygit2.Repository, name: str) -> str | None:
    """The commit id that the ref points to, None when there is no such ref."""
    try:
        return str(repo.lookup_reference(name).target)
    except (KeyError, ValueError):  # or it is no name of a ref, or no UTF-8
        return None


def swap(
    repo: pygit2.Repository, common: Path, name: str, new: str, expected: str | None, *, exchange: bool = False
) -> bool:
    """Move a ref from `expected` (None: absent) to `new`, after other writers; False if one of them moved it.

    `exchange`: the move survives a kill, but no power loss. Raises RepositoryError: the ref cannot be written.
    """
    began = time.monotonic()
    while True:
        try:
            done = _exchange(common, name, new, expected) if exchange and expected else None
            return _swap_once(repo, name, new, expected) if done is None else done
        except RepositoryError as error:
            if not WAIT_FOR_ROOM.get()(error):
                raise
        except OSError as error:  # somebody holds the lock, or is just tidying up the folder
            if WAIT_FOR_ROOM.get()(error):
                began = time.monotonic()
                continue
            patience = 3 * STALE_AFTER if "failed to lock" in str(error) else 1.0
            if time.monotonic() - began > patience:
                raise _unwritable(name, error) from error
            break_lock(common, name, STALE_AFTER)
            time.sleep(0.002)


def _exchange(common: Path, name: str, new: str, expected: str) -> bool | None:
    """Swap a ref that has a file and no log; None for others. ext4 writes a renamed lock at once: 0.6 to 2 ms."""
    file, exchange_names = f"{common}/{name}", _renameat2()
    if exchange_names is None or os.path.exists(f"{common}/logs/{name}") or not os.path.exists(file):  # noqa: PTH110  a Path takes longer
        return None
    lock = f"{file}.lock"
    try:
        fd = os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o666)
    except FileExistsError as error:
        raise OSError("failed to lock it") from error
    try:
        try:
            with open(file, "rb", buffering=0) as here:  # noqa: PTH123  a Path takes longer
                now = here.read(100)
        except FileNotFoundError:  # it may have been packed meanwhile
            now = b""
        if now != f"{expected}\n".encode():
            return None if now.startswith(b"ref:") else False
        if os.write(fd, f"{new}\n".encode()) <= len(new):
            raise OSError(errno.ENOSPC, "no room")
        return exchange_names(HERE, os.fsencode(lock), HERE, os.fsencode(file), EXCHANGE) == 0 or None
    finally:
        os.close(fd)
        with suppress(FileNotFoundError):  # whoever took us for dead removed it
            os.unlink(lock)  # noqa: PTH108


def _swap_once(repo: pygit2.Repository, name: str, new: str, expected: str | None) -> bool:
    try:
        if expected is None:
            repo.create_reference(name, new)
            return True
        reference = repo.lookup_reference(name)
        if str(reference.target) != expected:
            return False
        reference.set_target(new)
    except (pygit2.AlreadyExistsError, KeyError):
        return False
    except pygit2.GitError as error:
        if "does not match" in str(error):
            return False
        raise _unwritable(name, error) from error
    return True


def _unwritable(name: str, error: Exception) -> RepositoryError:
    return RepositoryError(
        f"cannot write {name}: {str(error).strip(': ')}; make room, or fix its permissions or what is in its way, "
        "then run again"
    )


def move(repo: pygit2.Repository, common: Path, name: str, new: str) -> None:
    """Point the ref to `new` wherever it points now."""
    while (current := target(repo, name)) != new:
        if swap(repo, common, name, new, current):
            return


def retry(attempt: Callable[[], bool]) -> None:
    """Repeat an attempt that lost a race until it wins."""
    while not attempt():
        time.sleep(0.0002)


def break_lock(common: Path, name: str, older_than: float) -> bool:
    """Remove the lock of one ref when it is older than `older_than` seconds; says whether it did."""
    lock = common / f"{name}.lock"
    try:
        if time.time() - lock.lstat().st_mtime > older_than and _is_own(common, lock):
            lock.unlink()
            return True
    except (FileNotFoundError, NotADirectoryError):
        pass
    return False


def stale_locks(common: Path, folders: Iterable[str]) -> list[str]:
    """The refs below some folders with a lock that is too old to be of a process at work."""
    found = []
    for lock in (each for folder in folders for each in _locks(common, folder)):
        with suppress(FileNotFoundError):
            if time.time() - lock.lstat().st_mtime > STALE_AFTER:
                found.append(lock.relative_to(common).as_posix().removesuffix(".lock"))
    return sorted(found)


def clear_locks(common: Path, folder: str, older_than: float = 2.0) -> None:
    """Remove ref locks of a killed engine once `older_than` seconds old; only for who holds the run."""
    for lock in _locks(common, folder):
        name = lock.relative_to(common).as_posix().removesuffix(".lock")
        seen = time.monotonic()
        while os.path.lexists(lock) and not break_lock(common, name, older_than):
            if time.monotonic() - seen > older_than:  # whatever the clocks say: it is from the future
                lock.unlink(missing_ok=True)
            time.sleep(0.05)


def _locks(common: Path, folder: str) -> list[Path]:
    """The lock files below a folder of refs, none through a link: what lies there is not Git's."""
    found = (lock for lock in below(common, folder) if lock.suffix == ".lock")
    return [lock for lock in sorted(found) if _is_own(common, lock)]


def below(common: Path, folder: str) -> Iterator[Path]:
    """Yield all files and folders below a folder of Git's; none if a link leads to it, and none through a link."""
    if any(path.is_symlink() for path in _way(common, folder)):
        return
    for place, folders, files in os.walk(common / folder):
        yield from (Path(place, name) for name in (*folders, *files))


def _way(common: Path, folder: str) -> list[Path]:
    """The folders from below Git's `refs`, which may be a link, to this one."""
    return [common / folder, *(common / folder).parents][: folder.count("/")][::-1]


def _is_own(common: Path, lock: Path) -> bool:
    below = lock.relative_to(common / "refs").parent
    return (common / "refs").resolve() / below == lock.parent.resolve()


def first_link(common: Path, folders: Iterable[str]) -> Path | None:
    """A symbolic link among these folders below `refs`, those around them and all that is in them."""
    for folder in folders:
        for path in chain(_way(common, folder), below(common, folder)):
            if path.is_symlink():
                return path
    return None
