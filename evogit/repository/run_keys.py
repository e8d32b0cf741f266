"""The secrets of runs: files beside the refs, which no commit, journal or program holds.

Two keys come from the one of a run: evaluators draw their inputs with the first, and journal entries are sealed with
the second. The first `run-started` has a hash of the first. Anyone who has the file may write to the run and can repeat
its evaluations; with the journal alone neither is possible.

A file of 33 or 65 bytes begins with `DERIVED`, and both keys are derived from the rest. Older files have no such byte:
the first 32 bytes draw inputs, and the whole file seals.
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
"""Bytes of a key. Deterministic runs share theirs, so that their files have as many more, for seals of their own."""
DERIVED = b"\x02"
"""The first byte of a file whose two keys are derived, each with a label."""
SEAL = 32
"""Hex digits of a seal: 128 bits of HMAC-SHA256."""


def inputs_key(key: bytes) -> bytes:
    """The key that inputs are drawn with, of the key of a run; it says nothing about that of seals."""
    if len(key) % LENGTH == 0:
        return key[:LENGTH]
    return hmac.digest(key[1 : 1 + LENGTH], b"evogit key of inputs", "sha256")


def seal_key(key: bytes) -> bytes:
    """The key that journal entries are sealed with, of the key of a run."""
    return key if len(key) % LENGTH == 0 else hmac.digest(key[1:], b"evogit key of seals", "sha256")


def commitment(key: bytes) -> str:
    """The public hash that identifies the key of a run by the one that inputs are drawn with; empty for none."""
    return committed(inputs_key(key)) if key else ""


def committed(inputs: bytes) -> str:
    """The public hash of a key that inputs are drawn with; empty for none."""
    return hashlib.sha256(b"evogit inputs\0" + inputs).hexdigest() if inputs else ""


def seal(key: bytes, host: str, before: str | None, record: str) -> str:
    """What shows that the holder of a key wrote this entry of a host after the one `before`, and so all before it."""
    text = "\0".join(("evogit journal", host, before or "", record))
    return hmac.digest(seal_key(key), text.encode(), "sha256").hex()[:SEAL]


def kept(file: Path, mark: bytes = b"") -> bytes:
    """The key in a file that its owner alone can read, after a `mark`; the first one to come makes it.

    Raises:
        RepositoryError: it can be neither read nor made.
    """
    with suppress(FileNotFoundError):
        return _read(file)
    with _draft(file, mark + os.urandom(LENGTH)) as draft:
        with suppress(FileExistsError):
            os.link(draft, file)  # atomic, and the first one wins
        return _read(file)


def _read(file: Path) -> bytes:
    """The content of a file that may not be there.

    Raises:
        FileNotFoundError: it is not.
        RepositoryError: it cannot be read.
    """
    try:
        return file.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise RepositoryError(f"the key in {file} cannot be read: {error.strerror}") from error


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
        return kept(self.folder / run, DERIVED)

    def keep(self, run: str, key: bytes) -> None:
        """Keep the key of a run that begins.

        Raises:
            RepositoryError: it cannot be kept.
        """
        file = self.folder / run
        with _draft(file, key) as draft:
            draft.replace(file)

    def share(self, run: str, secret: bytes) -> bytes:
        """The key of a run whose inputs are drawn as in others with this secret, and whose seals are its own.

        Raises:
            RepositoryError: it cannot be kept.
        """
        known, key = self.find(run), DERIVED + secret + os.urandom(LENGTH)
        if known and inputs_key(known) in (secret, inputs_key(key)):
            return known
        self.keep(run, key)
        return key

    def find(self, run: str) -> bytes:
        """The key of a run; empty where this clone has none.

        Raises:
            RepositoryError: it cannot be read.
        """
        with suppress(FileNotFoundError):
            return _read(self.folder / run)
        return b""

    def forget(self, run: str) -> None:
        """Remove the key of a run that is removed."""
        (self.folder / run).unlink(missing_ok=True)
