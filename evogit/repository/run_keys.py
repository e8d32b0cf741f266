"""The secrets of runs: files beside the refs, which no commit, journal or program holds.

Evaluators draw their inputs with the key of a run, and its journal entries are sealed with it. The first `run-started`
has its hash. Who has the file may write to the run and can repeat its evaluations; who has only the journal can do
neither.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from evogit.core import RepositoryError

LENGTH = 32
"""Bytes of a key. A file that has more has a key of its own for seals, since deterministic runs share the first one."""
SEAL = 32
"""Hex digits of a seal: 128 bits of HMAC-SHA256."""


def commitment(key: bytes) -> str:
    """What may be known of a key, and identifies it; empty for none."""
    return hashlib.sha256(b"evogit inputs\0" + key[:LENGTH]).hexdigest() if key else ""


def seal(key: bytes, host: str, before: str | None, record: str) -> str:
    """What shows that the holder of a key wrote this entry of a host after the one `before`, and so all before it."""
    text = "\0".join(("evogit journal", host, before or "", record))
    return hmac.digest(key, text.encode(), "sha256").hex()[:SEAL]


def kept(file: Path) -> bytes:
    """The key in a file that its owner alone can read; the first one to come makes it.

    Raises:
        RepositoryError: it can be neither read nor made.
    """
    with _draft(file, os.urandom(LENGTH)) as draft:
        with suppress(FileExistsError):
            os.link(draft, file)  # atomic, and the first one wins
        return file.read_bytes()


@contextmanager
def _draft(file: Path, key: bytes) -> Iterator[Path]:
    """A file with the key that is to be named `file`, and is gone at the end.

    Raises:
        RepositoryError: it cannot be made, or what is done with it fails.
    """
    draft = file.with_name(f"{file.name}~{os.urandom(4).hex()}")  # which is no run's name
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        try:
            os.write(descriptor, key)
            os.close(descriptor)
            yield draft
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise RepositoryError(f"expected to be allowed to keep a secret in {file}: {error.strerror}") from error


class RunKeys:
    """Those of the runs of one clone, each in a file of the run's name."""

    def __init__(self, common: Path) -> None:
        self.folder = common / "evogit" / "keys"

    def make(self, run: str) -> bytes:
        """A new one for a run that begins; engines that begin it together get the same.

        Raises:
            RepositoryError: it cannot be kept.
        """
        return kept(self.folder / run)

    def keep(self, run: str, key: bytes) -> None:
        """Keep the key of a run that begins.

        Raises:
            RepositoryError: it cannot be kept.
        """
        file = self.folder / run
        with _draft(file, key) as draft:
            draft.replace(file)

    def share(self, run: str, key: bytes) -> None:
        """Keep a key that other runs have too, with one of this run's own behind it, so that no other's entries count.

        Raises:
            RepositoryError: it cannot be kept.
        """
        if not self.find(run).startswith(key):
            self.keep(run, key + os.urandom(LENGTH))

    def find(self, run: str) -> bytes:
        """The key of a run; empty where this clone has none.

        Raises:
            RepositoryError: it cannot be read.
        """
        try:
            return (self.folder / run).read_bytes()
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise RepositoryError(f"the key of the run {run} cannot be read: {error}") from error

    def forget(self, run: str) -> None:
        """Remove the key of a run that is removed."""
        (self.folder / run).unlink(missing_ok=True)
