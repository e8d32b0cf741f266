"""What everything that works on a run is given: where it is stored, what happened in it, what it is about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from msgspec import Struct
from msgspec.structs import replace

from evogit.credentials import Redactor, SeedSecrets
from evogit.history import snapshot
from evogit.history.history import History
from evogit.repository import BEGINNING, Journal, Repository, StaleError

if TYPE_CHECKING:
    from evogit.config import Task


def screened(task: Task, repository: Repository, history: History) -> Task:
    """The task with the secret files of the run's seed, or of the commit that becomes its seed."""
    if history.seed:
        return task.screened(repository.trees, history.phylogeny[history.seed].tree)
    return task if task.seed else task.screened(repository.trees, repository.tree_of(repository.head()))


def redactor(task: Task, repository: Repository, history: History) -> Redactor:
    """Return the redactor of the secrets in the evaluator's folder, and in the seed if the task was `screened`.

    Raises:
        ConfigError: a symbolic link leads out of the evaluator's folder.
    """
    files = task.evaluator_secrets()
    if history.seed and task.secret:
        readers = repository.trees.readers(history.phylogeny[history.seed].tree)
        files |= {f"seed/{path}": readers[path]() for path in task.secret if path in readers}  # it has its own .evogit
    return Redactor(files)


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
        """The same with the task that candidates are evaluated by, which knows the secret files of the seed."""
        return RunContext(self.repository, self.history, self.journal, screened(task, self.repository, self.history))


class RunContext(StoredRun, frozen=True):
    """A run and its task, as its user has them: the engine with that id, or a person (no id)."""

    task: Task
    engine: str = ""

    def secrets(self) -> SeedSecrets | None:
        """The files of the seed that hold credentials."""
        seed = self.history.seed
        return SeedSecrets(seed, self.task.secret) if seed else None

    def of(self, engine: str) -> Self:
        """The same for an engine."""
        return replace(self, engine=engine)
