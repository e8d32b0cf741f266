"""What everything that works on a run is given: where it is stored, what happened in it, what it is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from evogit.history import snapshot
from evogit.history.history import History
from evogit.repository import BEGINNING, Journal, Repository, StaleError

if TYPE_CHECKING:
    from evogit.config import Task


@dataclass(frozen=True, slots=True)
class StoredRun:
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
        if (position := journal.position) and snapshot.worth_it(after.entries, position.entries):
            snapshot.save(repository, history, position)
        return cls(repository, history, journal)

    def about(self, task: Task) -> RunContext:
        """The same with the task that candidates are evaluated by."""
        return RunContext(self.repository, self.history, self.journal, task)


@dataclass(frozen=True, slots=True)
class RunContext(StoredRun):
    """A run and its task, as its user has them: the engine with that id, or a person (no id)."""

    task: Task
    engine: str = ""

    def of(self, engine: str) -> Self:
        """The same for an engine."""
        return replace(self, engine=engine)
