"""All runs of a person on this machine: a small file with a line for each, written when one starts and ends."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from evogit.core import EvoGitError, NotFoundError, RepositoryError
from evogit.history import History
from evogit.history.context import StoredRun
from evogit.repository import Repository
from evogit.trust import state_folder


class ListedRun(Struct, frozen=True, kw_only=True):
    """One line: a run of the repository at a path, the process that worked on it last, and its exit code.

    That is None while it works, and where it was killed.
    """

    repository: str
    run: str
    pid: int
    exit: int | None = None

    @property
    def alive(self) -> bool:
        """Whether there is a process of that number."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True

    def open(self) -> Repository | RepositoryError | None:
        """The repository, or why it cannot be read; None if it is gone, or has the run neither now nor soon."""
        try:
            repository = Repository.open(Path(self.repository))
            there = self.run in repository.runs() or (self.exit is None and self.alive)
        except NotFoundError:
            return None
        except RepositoryError as error:
            return error
        return repository if there else None


class RunList:
    """The file; whoever changes it holds its lock."""

    def __init__(self, file: Path) -> None:
        self._file = file

    @classmethod
    def of_person(cls, environ: Mapping[str, str]) -> Self:
        """The list of the person whose environment this is."""
        return cls(state_folder(environ) / "runs.jsonl")

    def runs(self) -> list[ListedRun]:
        """All that are listed, the one that started first at the beginning. Raises OSError: the file cannot be read."""
        try:
            text = self._file.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return []
        found = list[ListedRun]()
        for line in text.splitlines():
            with suppress(msgspec.DecodeError, ValueError, RecursionError):  # it was not written to the end
                found.append(msgspec.json.decode(line, type=ListedRun))
        return found

    def find(self, repository: Repository, run: str) -> ListedRun | None:
        """The line of a run."""
        mine = (str(repository.path), run)
        return next((each for each in self.runs() if (each.repository, each.run) == mine), None)

    def begin(self, repository: Repository, run: str) -> None:
        """This process works on a run. Raises OSError: the list cannot be written."""
        mine = ListedRun(repository=str(repository.path), run=run, pid=os.getpid())
        at = (mine.repository, mine.run)
        self._change(lambda listed: [*(each for each in listed if (each.repository, each.run) != at), mine])

    def end(self, repository: Repository, run: str, code: int) -> None:
        """This process ends with that exit code. Raises OSError: the list cannot be written."""
        mine = ListedRun(repository=str(repository.path), run=run, pid=os.getpid())
        ended = replace(mine, exit=code)
        self._change(lambda listed: [ended if each == mine else each for each in listed])

    def opened(self) -> list[tuple[ListedRun, Repository | RepositoryError]]:
        """All runs with their repositories, or why they cannot be read; drops those that are gone. Raises OSError."""
        found = [(each, each.open()) for each in self.runs()]
        gone = [each for each, repository in found if repository is None]
        if gone:
            self._change(lambda listed: [each for each in listed if each not in gone])
        return [(each, repository) for each, repository in found if repository is not None]

    def _change(self, change: Callable[[Sequence[ListedRun]], Sequence[ListedRun]]) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self._file.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            draft = self._file.with_suffix(".draft")
            draft.write_bytes(msgspec.json.Encoder().encode_lines(change(self.runs())))
            draft.replace(self._file)


class RunOverview(Struct, frozen=True, kw_only=True):
    """The state of a run in one line: `engines` at work, and why its history is unknown (`trouble`).

    `since` is when the first engine began, or the last entry was written, in seconds since 1970.
    """

    path: Path
    history: History
    engines: Sequence[str]
    since: float
    trouble: str = ""

    @classmethod
    def of(cls, repository: Repository, run: str) -> Self:
        """That of a run, which may not have begun, or be of a newer version or damaged."""
        engines, trouble = None, ""
        history = History(run)
        try:
            engines = repository.engines(run)
            history = StoredRun.open(repository, run).history
        except EvoGitError as error:
            trouble = str(error)
        since = (engines and engines.since()) or history.span[1] or time.time()
        alive = engines.alive() if engines else ()
        return cls(path=repository.path, history=history, engines=alive, since=since, trouble=trouble)

    @classmethod
    def unreadable(cls, listed: ListedRun, error: RepositoryError) -> Self:
        """That of a run whose repository cannot be read."""
        path, history = Path(listed.repository), History(listed.run)
        return cls(path=path, history=history, engines=(), since=time.time(), trouble=str(error))

    def record(self) -> dict[str, Any]:
        """The same for a machine."""
        history = self.history
        best, stopped = history.best, None if self.engines else history.stopped
        return {
            "repository": str(self.path),
            "run": history.run,
            "engines": list(self.engines),
            "stopped_because": stopped.reason if stopped else None,
            "stopped_detail": stopped.detail if stopped else "",
            "evaluated": history.counts.evaluated,
            "best": history.fitness(best) if best else None,
            "metric": history.metric.name if history.started else None,
            "since": self.since,
            "trouble": self.trouble,
        }
