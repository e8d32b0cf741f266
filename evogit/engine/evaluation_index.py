"""An index of the evaluations that this user's engines journalled in a clone, for runs that have equal candidates.

Journals in the same Git folder may be anybody's, so none of them is asked for scores. Each line names a journal entry
and is sealed with a key of this user's, which lies outside the repository.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property

from evogit.core import RepositoryError
from evogit.evaluation.inputs import of_person
from evogit.events import Evaluated
from evogit.repository import Repository

FILE = "evaluated"
MAX_BYTES = 1 << 28
"""Bytes of the index that are read: about a million evaluations; a larger one counts as empty."""


class EvaluationIndex:
    """The index of one clone, as an engine of `run` uses it; without a key of this user's it is empty."""

    def __init__(self, repository: Repository, run: str, environ: Mapping[str, str] = os.environ) -> None:
        self._repository = repository
        self._run = run
        self._key = b""
        with suppress(RepositoryError):  # no place for it: then nothing is shared
            self._key = of_person(environ, "evaluated")

    def add(self, key: str, entry: str) -> None:
        """Note which entry of this run holds the evaluation with a key."""
        if not self._key:
            return
        name = hashlib.sha256(key.encode()).hexdigest()
        line = f"{name} {entry} {self._run} {self._seal(name, entry, self._run)}\n"
        with suppress(OSError, RepositoryError), self._repository.state.opened(make=True) as folder:
            descriptor = folder.open(FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(descriptor, line.encode())
            finally:
                os.close(descriptor)

    def find(self, key: str) -> Evaluated | None:
        """The evaluation with a key that an engine of this user's journalled in another run; None if there is none."""
        name = hashlib.sha256(key.encode()).hexdigest()
        entry, run, told = self._lines.get(name, ("", "", ""))
        if not self._key or not hmac.compare_digest(told.encode(), self._seal(name, entry, run).encode()):
            return None
        event = self._repository.event(entry)
        return event if isinstance(event, Evaluated) and event.evaluation.key == key else None

    @cached_property
    def _lines(self) -> Mapping[str, tuple[str, str, str]]:
        """The index as it was when it was asked first; of several lines with a key the last one of another run."""
        found: dict[str, tuple[str, str, str]] = {}
        content = b""
        with suppress(OSError, RepositoryError), self._repository.state.opened() as folder:
            content = folder.read(FILE, MAX_BYTES)
        for line in content.decode(errors="replace").splitlines():
            match line.split(" "):
                case [name, entry, run, told] if run != self._run:
                    found[name] = entry, run, told
        return found

    def _seal(self, *parts: str) -> str:
        return hmac.digest(self._key, "\0".join(parts).encode(), "sha256").hex()
