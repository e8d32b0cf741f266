"""Engines at work: this clone's name, and one locked file per running engine."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import socket
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from evogit.core import RefusedError, RepositoryError, UsageError


def host_name(common: Path) -> str:
    """The name of this clone, made once: its machine's name plus six hex digits.

    Raises:
        RepositoryError: it has none yet, and may not be given one.
    """
    file = common / "evogit" / "host"
    if not file.exists():
        with _permitted():
            _name_host(file)
    return file.read_text().strip()


@contextmanager
def _permitted() -> Iterator[None]:
    try:
        yield
    except PermissionError as error:
        raise RepositoryError(f"expected to be allowed to write to {error.filename}; ask its owner") from error


def _name_host(file: Path) -> None:
    machine = re.sub(r"[^a-z0-9-]+", "-", socket.gethostname().lower()).strip("-")[:40] or "host"
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f"host.{os.urandom(4).hex()}")
    draft.write_text(f"{machine}-{os.urandom(3).hex()}\n")
    try:
        os.link(draft, file)  # atomic, and the first one wins
    except FileExistsError:
        pass
    finally:
        draft.unlink()


def name_clone(common: Path, name: str, journals: Collection[str]) -> None:
    """Let the clone have this name, as the machine's says nothing; `journals` are the hosts that have one here.

    Raises:
        UsageError: it cannot be one.
        RefusedError: it has another one that a journal has by now.
    """
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,46}", name):
        raise UsageError(f"expected --host of small letters, digits and dashes, got {name!r}")
    file = common / "evogit" / "host"
    known = file.read_text().strip() if file.exists() else ""
    if known == name:
        return
    if known in journals or name in journals:
        raise RefusedError(
            f"this clone cannot be the host {name}, as runs have a journal of "
            f"{'it as ' + known if known in journals else 'another one of that name'}; leave --host out"
        )
    with _permitted():
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = file.with_name(f"host.{os.urandom(4).hex()}")
        draft.write_text(f"{name}\n")
        draft.replace(file)


def forget_clone(common: Path) -> None:
    """Remove the clone's name, its scratch folder and secrets, unless an engine begins a run just now."""
    with suppress(OSError):
        (common / "evogit" / "engines").rmdir()
        for folder in ("scratch", "keys", "holdouts", "logs", "remotes"):
            shutil.rmtree(common / "evogit" / folder, ignore_errors=True)
        for file in ("host", "evaluated"):
            (common / "evogit" / file).unlink(missing_ok=True)
        (common / "evogit").rmdir()


OWN: set[tuple[Path, str]] = set()
"""The engines of this process."""


class Engines:
    """The engines of one run in this clone. A lock dies with its process, however that ends."""

    def __init__(self, common: Path, run: str, host: str) -> None:
        self._folder = common / "evogit" / "engines" / run
        self._gate = self._folder.parent / f".{run}.starting"
        self._host = host

    @contextmanager
    def enter(self, *, join: bool) -> Iterator[str]:
        """Be an engine of this run; yields its name, `<host>-<six hex digits>`.

        Raises:
            RefusedError: when another engine is at work and `join` is false.
        """
        name = f"{self._host}-{os.urandom(3).hex()}"
        with self._starting():
            if not join:
                self.check_idle()
            for dead in {file.name for file in self._folder.glob("*")} - set(self.alive()):
                (self._folder / dead).unlink()
            descriptor = os.open(self._folder / name, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            OWN.add((self._folder, name))
        try:
            yield name
        finally:
            OWN.discard((self._folder, name))
            (self._folder / name).unlink(missing_ok=True)
            os.close(descriptor)

    def check_idle(self) -> None:
        """Refuse a second engine that does not join.

        Raises:
            RefusedError: an engine is at work.
        """
        others = self.alive()
        if any((self._folder, name) in OWN for name in others):
            raise RefusedError(
                "another engine of this process works on this run in this repository: a Run goes on until it is told "
                "to stop(), and ends a moment later"
            )
        if others:
            raise RefusedError(
                f"another engine ({', '.join(others)}) works on this run in this repository; follow it with `evogit "
                "attach`, stop it with `evogit stop`, or work beside it with --join"
            )

    @contextmanager
    def _starting(self) -> Iterator[None]:
        """One engine looks around at a time."""
        with _permitted():
            self._folder.mkdir(parents=True, exist_ok=True)
            gate = self._gate.open("w")
        with gate:
            fcntl.flock(gate, fcntl.LOCK_EX)
            yield

    def forget(self) -> None:
        """Remove the files of a run that is gone; what another engine holds stays."""
        with suppress(OSError):
            self._folder.rmdir()
            self._gate.unlink()

    def alive(self) -> list[str]:
        """Names of the engines at work; takes no more than the right to read."""
        return [file.name for file in sorted(self._folder.glob("*")) if _locked(file)]

    def note(self, engine: str, told: Sequence[Mapping[str, Any]]) -> None:
        """Let others see what an engine at work says of itself, until it ends; nothing where there is no room."""
        file = self._folder / engine
        with suppress(OSError), file.open("r+b", buffering=0) as handle:
            began = os.fstat(handle.fileno()).st_mtime_ns
            handle.write(json.dumps(told).encode() + b"\n")
            handle.truncate()
            os.utime(file, ns=(began, began))

    def noted(self) -> list[dict[str, Any]]:
        """What engines at work say of themselves, one after the other."""
        found: list[dict[str, Any]] = []
        for name in self.alive():
            with suppress(OSError, ValueError):  # it ended just now, or says something else just now
                found += json.loads((self._folder / name).read_bytes() or b"[]")
        return found

    def since(self) -> float | None:
        """When the first of the engines at work began, in seconds since 1970; None where none is."""
        files = [self._folder / name for name in self.alive()]
        with suppress(FileNotFoundError):  # it ended just now
            return min((file.stat().st_mtime for file in files), default=None)
        return None


def _locked(file: Path) -> bool:
    try:
        with file.open() as handle:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared, so that who looks is not taken for an engine
    except BlockingIOError:
        return True
    except FileNotFoundError:
        pass
    return False
