"""A run that another process may be writing, read on as it grows."""

from __future__ import annotations

from collections import deque

from evogit.core import Entry
from evogit.history import History
from evogit.history.context import StoredRun
from evogit.repository import Repository
from evogit.review.best_course import BestCourse
from evogit.review.forecast import Pace

LATEST = 60
"""Entries that are remembered."""


class Following:
    """The history of a run with what only its course tells: how its best grew, and how fast it goes on."""

    def __init__(self, repository: Repository, name: str) -> None:
        """Read all of the run.

        Raises:
            RepositoryError: a journal is damaged.
            RefusedError: a record was written by a newer version.
        """
        self.history = History(name)
        self.course = BestCourse(self.history)
        self.pace = Pace(self.history)
        self.entries = 0
        self.latest: deque[Entry] = deque(maxlen=LATEST)
        self.run = StoredRun(repository, self.history, repository.journal(name, self._take))

    def _take(self, entry: Entry) -> None:
        self.history.apply(entry)
        self.course.take(entry)
        self.pace.take(entry)
        self.entries += 1
        self.latest.append(entry)

    def advance(self) -> bool:
        """Read what came since; whether anything did.

        Raises:
            StaleError: the run is gone, or lost entries.
        """
        before = self.entries
        self.run.journal.refresh()
        return self.entries != before
