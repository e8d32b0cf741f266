"""Refs moved by compare-and-swap only, and the lock files that a killed process leaves behind."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable
from pathlib import Path

import pygit2

from evogit.core import RepositoryError

STALE_AFTER = 10.0
"""Seconds after which a ref lock must belong to a dead process: a live one holds it for about a millisecond."""


UNLOGGED = "refs/evogit/"
"""Where refs have no reflog."""


def target(repo: pygit2.Repository, name: str) -> str | None:
    """The commit id that the ref points to, None when there is no such ref."""
    try:
        return str(repo.lookup_reference(name).target)
    except (KeyError, pygit2.InvalidSpecError):
        return None


def swap(repo: pygit2.Repository, common: Path, name: str, new: str, expected: str | None) -> bool:
    """Point the ref `name` to `new` if it still points to `expected` (None: if it does not exist yet).

    Waits for other writers; returns False when another writer moved it.

    Raises:
        RepositoryError: when the ref cannot be written at all.
    """
    began = time.monotonic()
    while True:
        try:
            done = _swap_file(f"{common}/{name}", new, expected) if expected and name.startswith(UNLOGGED) else None
            return _swap_once(repo, name, new, expected) if done is None else done
        except OSError as error:  # somebody holds the lock, or is just tidying up the folder
            patience = 3 * STALE_AFTER if "failed to lock" in str(error) else 1.0
            if time.monotonic() - began > patience:
                raise _unwritable(name, error) from error
            break_lock(common, name, STALE_AFTER)
            time.sleep(0.002)


def _swap_file(file: str, new: str, expected: str) -> bool | None:
    """The same as Git does it, with a fifth of libgit2's system calls, for a ref that has a file; None for others."""
    lock = f"{file}.lock"
    try:
        locked = os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o666)
    except FileNotFoundError:
        return None
    except FileExistsError as error:
        raise OSError("failed to lock it") from error
    try:
        done = _is_at(file, expected)
        if done:
            if os.write(locked, f"{new}\n".encode()) <= len(new):
                raise OSError(errno.ENOSPC, "no room")
            os.rename(lock, file)  # noqa: PTH104  a Path takes longer than the system does
    except OSError:
        done = None
        raise
    finally:
        os.close(locked)
        if not done:
            os.unlink(lock)  # noqa: PTH108
    return done


def _is_at(file: str, expected: str) -> bool | None:
    """Whether a ref's file names that commit; None where there is no file, or it names another ref."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:  # it is packed
        return None
    try:
        found = os.read(descriptor, 100)
    finally:
        os.close(descriptor)
    return None if found.startswith(b"ref:") else found == f"{expected}\n".encode()


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
        if time.time() - lock.stat().st_mtime > older_than:
            lock.unlink()
            return True
    except (FileNotFoundError, NotADirectoryError):
        pass
    return False


def clear_locks(common: Path, folder: str, older_than: float = 2.0) -> None:
    """Remove the locks below a ref folder that a killed engine left, waiting until each is `older_than` seconds old.

    Only for the one engine that holds the run: others keep such a lock for a moment only.
    """
    for lock in sorted((common / folder).rglob("*.lock")):
        name = lock.relative_to(common).as_posix().removesuffix(".lock")
        seen = time.monotonic()
        while lock.exists() and not break_lock(common, name, older_than):
            if time.monotonic() - seen > older_than:  # whatever the clocks say: it is from the future
                lock.unlink(missing_ok=True)
            time.sleep(0.05)
