"""The secrets that evaluators' inputs are drawn with: files beside the refs, which no commit, journal or program holds.

The journal of a run has the hash of its own. Who has the file can repeat the run's evaluations; who has only the
journal cannot predict them.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

from evogit.core import RepositoryError

LENGTH = 32
"""Bytes of a secret."""


def commitment(secret: bytes) -> str:
    """What may be known of a secret, and identifies it; empty for none."""
    return hashlib.sha256(b"evogit inputs\0" + secret).hexdigest() if secret else ""


def kept(file: Path, secret: bytes = b"") -> bytes:
    """The secret in a file that its owner alone can read; the first one to come makes it.

    Raises:
        RepositoryError: it can be neither read nor made.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = file.with_name(f"{file.name}~{os.urandom(4).hex()}")  # which is no run's name
        descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        try:
            os.write(descriptor, secret or os.urandom(LENGTH))
            os.close(descriptor)
            with suppress(FileExistsError):
                os.link(draft, file)  # atomic, and the first one wins
        finally:
            draft.unlink()
        return file.read_bytes()
    except OSError as error:
        raise RepositoryError(
            f"expected to be allowed to keep the secret that inputs are drawn with in {file}: {error.strerror}"
        ) from error


class InputKeys:
    """Those of the runs of one clone."""

    def __init__(self, common: Path) -> None:
        self.folder = common / "evogit" / "keys"

    def make(self, run: str) -> bytes:
        """A new one for a run that begins; engines that begin it together get the same.

        Raises:
            RepositoryError: it cannot be kept.
        """
        return kept(self.folder / run)

    def keep(self, secret: bytes) -> bytes:
        """Keep one that was made elsewhere.

        Raises:
            RepositoryError: it cannot be kept.
        """
        return kept(self.folder / commitment(secret)[:LENGTH], secret)

    def find(self, known: str) -> bytes | None:
        """The one with this commitment, whichever run it was made for, as runs that fork go on with theirs."""
        for file in sorted(self.folder.glob("*")):
            with suppress(OSError):
                secret = file.read_bytes()
                if commitment(secret) == known:
                    return secret
        return None
