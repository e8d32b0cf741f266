"""Engines at work: this clone's name, and one locked file per running engine."""

from __future__ import annotations

import fcntl
import json
import os
import re
import socket
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from evogit.core import RefusedError, RepositoryError, UsageError
from evogit.repository.state_folder import OpenFolder, StateFolder

HOST = re.compile(r"[a-z0-9][a-z0-9-]{0,46}")  # names of clones
ENGINE = re.compile(rf"{HOST.pattern}-[0-9a-f]{{6}}")  # names of engines; no other file there is removed
MAX_HOST_BYTES = 200
MAX_NOTE_BYTES = 1 << 20


def host_name(state: StateFolder) -> str:
    """The name of this clone, made once. Raises RepositoryError: it cannot be made, or the file holds none."""
    if (name := _known_host(state)) is None:
        machine = re.sub(r"[^a-z0-9-]+", "-", socket.gethostname().lower()).strip("-")[:40] or "host"
        with _permitted(), state.opened(make=True) as folder:
            folder.write_once("host", f"{machine}-{os.urandom(3).hex()}\n".encode())
        name = _known_host(state)
    if not name or not HOST.fullmatch(name):
        raise RepositoryError(
            f"expected the name of this clone in {state.path / 'host'} (small letters, digits, dashes), "
            f"got {(name or '')[:60]!r}; remove the file, and a name is made"
        )
    return name


def _known_host(state: StateFolder) -> str | None:
    with suppress(FileNotFoundError), state.opened() as folder:
        return folder.read("host", MAX_HOST_BYTES).decode(errors="replace").strip()
    return None


@contextmanager
def _permitted() -> Iterator[None]:
    try:
        yield
    except PermissionError as error:
        raise RepositoryError(f"expected to be allowed to write to {error.filename}; ask its owner") from error
    except FileNotFoundError as error:
        raise RepositoryError(f"the repository is gone: {error.filename}") from error


def name_clone(state: StateFolder, name: str, journals: Collection[str]) -> None:
    """Name the clone. Raises UsageError: it cannot be one; RefusedError: one of `journals` has the old or new name."""
    if not HOST.fullmatch(name):
        raise UsageError(f"expected --host of small letters, digits and dashes, got {name!r}")
    known = _known_host(state) or ""
    if known == name:
        return
    if known in journals or name in journals:
        raise RefusedError(
            f"this clone cannot be the host {name}, as runs have a journal of "
            f"{'it as ' + known if known in journals else 'another one of that name'}; leave --host out"
        )
    with _permitted(), state.opened(make=True) as folder:
        folder.replace("host", [f"{name}\n".encode()])


def forget_clone(state: StateFolder) -> None:
    """Remove the clone's name, its scratch folder and secrets, unless an engine begins a run just now."""
    with suppress(OSError):
        with state.opened() as folder:
            folder.remove_folder("engines")
            for name in ("scratch", "keys", "holdouts", "logs", "remotes"):
                folder.remove_tree(name)
            for file in ("host", "evaluated"):
                folder.remove(file)
        state.path.rmdir()


OWN: set[tuple[Path, str]] = set()  # the engines of this process


class Engines:
    """The engines of one run in this clone. A lock dies with its process, however that ends."""

    def __init__(self, state: StateFolder, run: str, host: str) -> None:
        self._all = state.below("engines")
        self._files = self._all.below(run)
        self._folder = self._files.path
        self._gate = f".{run}.starting"
        self._run, self._host = run, host

    @contextmanager
    def enter(self, *, join: bool) -> Iterator[str]:
        """Be an engine of this run; yields its name. Raises RefusedError: another one works, and `join` is false."""
        name = f"{self._host}-{os.urandom(3).hex()}"
        with _permitted(), self._all.opened(make=True) as folder:
            gate = folder.open(self._gate, os.O_CREAT | os.O_RDWR)
        with os.fdopen(gate):
            fcntl.flock(gate, fcntl.LOCK_EX)
            if not join:
                self.check_idle()
            with _permitted(), self._files.opened(make=True) as folder:
                for dead in [each for each in _engines_in(folder) if not _is_locked(folder, each)]:
                    folder.remove(dead)
                descriptor = folder.open(name, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o644)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            OWN.add((self._folder, name))
        try:
            yield name
        finally:
            OWN.discard((self._folder, name))
            with suppress(FileNotFoundError), self._files.opened() as folder:
                folder.remove(name)
            os.close(descriptor)

    def check_idle(self) -> None:
        """Refuse a second engine that does not join. Raises RefusedError: an engine is at work."""
        others = self.alive()
        if any((self._folder, name) in OWN for name in others):
            raise RefusedError(
                "another engine of this process works on this run in this repository: a Run goes on until it is told "
                "to stop(), and ends a moment later"
            )
        if others:
            raise RefusedError(
                f"another engine ({', '.join(others)}) works on this run in this repository; follow it with `evogit "
                "watch`, stop it with `evogit stop`, or work alongside it with --join"
            )

    def forget(self) -> None:
        """Remove the files of a run that is gone; what another engine holds stays."""
        with suppress(OSError), self._all.opened() as folder:
            folder.remove_folder(self._run)
            folder.remove(self._gate)

    def alive(self) -> list[str]:
        """Names of the engines at work; takes no more than the right to read."""
        with suppress(FileNotFoundError), self._files.opened() as folder:
            return [name for name in _engines_in(folder) if _is_locked(folder, name)]
        return []

    def note(self, engine: str, told: Sequence[Mapping[str, Any]]) -> None:
        """Let others see what an engine at work says of itself, until it ends; nothing where there is no room."""
        with suppress(OSError), self._files.opened() as folder:
            descriptor = folder.open(engine, os.O_RDWR)
            with os.fdopen(descriptor, "r+b", buffering=0) as handle:
                began = os.fstat(descriptor).st_mtime_ns
                handle.write(json.dumps(told).encode() + b"\n")
                handle.truncate()
                os.utime(descriptor, ns=(began, began))

    def noted(self) -> list[dict[str, Any]]:
        """What engines at work say of themselves, one after the other."""
        found: list[dict[str, Any]] = []
        for name in self.alive():
            with suppress(OSError, ValueError), self._files.opened() as folder:  # it ends or writes just now
                found += json.loads(folder.read(name, MAX_NOTE_BYTES) or b"[]")
        return found

    def since(self) -> float | None:
        """When the first of the engines at work began, in seconds since 1970; None where none is."""
        names = self.alive()
        with suppress(FileNotFoundError), self._files.opened() as folder:  # it ended just now
            return min((folder.modified(name) for name in names), default=None)
        return None


def _engines_in(folder: OpenFolder) -> list[str]:
    return [name for name in folder.names() if ENGINE.fullmatch(name)]


def _is_locked(folder: OpenFolder, name: str) -> bool:
    try:
        descriptor = folder.open(name)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared: a reader must not look like an engine
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
