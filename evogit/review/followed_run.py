"""A run that another process may be writing, read on as it grows."""

from __future__ import annotations

from collections import deque

from evogit.core import Entry
from evogit.history.context import StoredRun
from evogit.repository import Repository
from evogit.review.forecast import Pace

LATEST = 60
"""Entries that are remembered."""


class Following:
    """The history of a run, how fast it goes on, and how many entries it has."""

    def __init__(self, repository: Repository, name: str) -> None:
        """Read all of the run.

        Raises:
            RepositoryError: a journal is damaged.
            RefusedError: a record was written by a newer version.
        """
        self.run = StoredRun.open(repository, name)
        self.run.journal.subscribe(self._take)
        self.history = self.run.history
        self.pace = Pace(self.history)
        self.entries = self.run.entries
        self.latest = deque(self.run.journal.latest(LATEST), LATEST)

    def _take(self, entry: Entry) -> None:
        self.entries += 1
        self.latest.append(entry)

    def read_on(self) -> bool:
        """Read what came since; whether anything did.

        Raises:
            StaleError: the run is gone, or lost entries.
        """
        before = self.entries
        self.run.journal.refresh()
        return self.entries != before
