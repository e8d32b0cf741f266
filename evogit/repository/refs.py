"""Refs moved by compare-and-swap only, and the lock files that a killed process leaves behind."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pygit2

from evogit.core import RepositoryError

STALE_AFTER = 10.0
"""Seconds after which a ref lock must belong to a dead process: a live one holds it for about a millisecond."""


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
            return _swap_once(repo, name, new, expected)
        except OSError as error:  # somebody holds the lock, or is just tidying up the folder
            patience = 3 * STALE_AFTER if "failed to lock" in str(error) else 1.0
            if time.monotonic() - began > patience:
                raise _unwritable(name, error) from error
            break_lock(common, name, STALE_AFTER)
            time.sleep(0.002)


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
