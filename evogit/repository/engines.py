"""Who is at work: this clone's name, and one locked file per running engine."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evogit.core import RefusedError


def host_name(common: Path) -> str:
    """The name of this clone, made once: its machine's name plus six hex digits."""
    file = common / "evogit" / "host"
    if not file.exists():
        machine = re.sub(r"[^a-z0-9-]+", "-", socket.gethostname().lower()).strip("-")[:40] or "host"
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = file.with_name(f"host.{secrets.token_hex(4)}")
        draft.write_text(f"{machine}-{secrets.token_hex(3)}\n")
        try:
            os.link(draft, file)  # atomic, and the first one wins
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return file.read_text().strip()


class Engines:
    """The engines of one run in this clone. A lock dies with its process, however that ends."""

    def __init__(self, common: Path, run: str, host: str) -> None:
        self._folder = common / "evogit" / "engines" / run
        self._host = host

    @contextmanager
    def enter(self, *, join: bool) -> Iterator[str]:
        """Be an engine of this run; yields its name, `<host>-<six hex digits>`.

        Raises:
            RefusedError: when another engine is at work and `join` is false.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        name = f"{self._host}-{secrets.token_hex(3)}"
        with self._starting():
            if (others := self._alive()) and not join:
                raise RefusedError(
                    f"another engine ({', '.join(others)}) works on this run in this repository; "
                    "wait for it, stop it with Ctrl-C, or work beside it with --join"
                )
            descriptor = os.open(self._folder / name, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        try:
            yield name
        finally:
            (self._folder / name).unlink(missing_ok=True)
            os.close(descriptor)

    @contextmanager
    def _starting(self) -> Iterator[None]:
        """One engine looks around at a time."""
        with (self._folder.parent / f".{self._folder.name}.starting").open("w") as gate:
            fcntl.flock(gate, fcntl.LOCK_EX)
            yield

    def alive(self) -> list[str]:
        """Names of the engines at work; files of dead ones are removed."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with self._starting():
            return self._alive()

    def _alive(self) -> list[str]:
        return [file.name for file in sorted(self._folder.glob("*")) if self._locked(file)]

    def _locked(self, file: Path) -> bool:
        try:
            with file.open("r+") as handle:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                file.unlink()
        except BlockingIOError:
            return True
        except FileNotFoundError:
            pass
        return False
