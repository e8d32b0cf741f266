"""What everything that works on a run is given: where it is stored, what happened in it, what it is about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from msgspec import Struct
from msgspec.structs import replace

from evogit.history import snapshot
from evogit.history.history import History
from evogit.repository import BEGINNING, Journal, Repository, StaleError

if TYPE_CHECKING:
    from evogit.config import Task


class StoredRun(Struct, frozen=True):
    """A run as a repository has it: its history, and the journal that keeps the history up to date."""

    repository: Repository
    history: History
    journal: Journal

    @classmethod
    def open(cls, repository: Repository, name: str, secrets: Sequence[str] = ()) -> StoredRun:
        """Read the run `name`, which may not have begun; `secrets` are redacted from all that is written.

        Raises:
            RefusedError: a record was written by a newer version.
            RepositoryError: a journal is damaged.
        """
        known = snapshot.load(repository, name)
        try:
            history, after = known or (History(name), BEGINNING)
            journal = repository.journal(name, history.apply, secrets, after)
        except StaleError:
            history, after = History(name), BEGINNING
            journal = repository.journal(name, history.apply, secrets)
        run = cls(repository, history, journal)
        run.keep(after.entries)
        return run

    @property
    def entries(self) -> int:
        """How many entries are known; 0 where they came in another order than that of the run's facts."""
        return position.entries if (position := self.journal.position) else 0

    def keep(self, before: int) -> None:
        """Write a snapshot for who reads the run next, if enough came since there were `before` entries."""
        if (position := self.journal.position) and snapshot.worth_it(before, position.entries):
            snapshot.save(self.repository, self.history, position)

    def about(self, task: Task) -> RunContext:
        """The same with the task that candidates are evaluated by."""
        return RunContext(self.repository, self.history, self.journal, task)


class RunContext(StoredRun, frozen=True):
    """A run and its task, as its user has them: the engine with that id, or a person (no id)."""

    task: Task
    engine: str = ""

    def of(self, engine: str) -> Self:
        """The same for an engine."""
        return replace(self, engine=engine)
