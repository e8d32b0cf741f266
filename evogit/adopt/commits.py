"""The programs that another system's log names by their commits, as Git has them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from evogit.core import NotFoundError
from evogit.repository import Repository

COMMIT = re.compile(r"[0-9a-f]{7,40}")
"""The name of a commit in a log; any other name, such as HEAD, leads to another one each time."""
FARTHEST = 500
"""Commits above one of a row among which it is looked for the program that was changed, where some row's is near."""

Programs = tuple[tuple[str, str], ...]
"""Path and blob of each file of a program, in order."""


class LoggedCommits:
    """The repository of a log, and the programs in it, whose paths begin in the log's folder."""

    def __init__(self, log: Path, folder: Path, is_program: Callable[[str], bool]) -> None:
        """Raises: NotFoundError: the log lies in no repository."""
        try:
            self.repository = Repository.discover(folder)
        except NotFoundError:
            raise NotFoundError(
                f"{log} lies in no Git repository, where the programs of its rows would be; import it where it was "
                "written, or from a clone that has all of its branches"
            ) from None
        above = (folder.resolve(), *folder.resolve().parents)
        if (root := next((each for each in above if (each / ".git").exists()), None)) is None:
            raise NotFoundError(f"{log} lies in a repository without a working tree; import it from a clone of that")
        place = folder.resolve().relative_to(root).as_posix()
        self._prefix = "" if place == "." else f"{place}/"
        self._is_program = is_program
        self._bare: set[str] = set()  # commits above which no row's is

    def commit(self, said: str) -> str:
        """The commit that a row names; empty where there is none."""
        try:
            return self.repository.branches.commit(said) if COMMIT.fullmatch(said) else ""
        except NotFoundError:
            return ""

    def files(self, commit: str) -> dict[str, bytes]:
        """The program as it is in a commit."""
        return {path: self.repository.trees.blob(blob) for path, blob in self._programs(commit)}

    def made_of(self, commit: str, rows: Collection[str]) -> str:
        """Return which of the commits of `rows` it was made of; empty for the first.

        The nearest above it that has the program which it changed, as commits of logs lie in between, and what `git
        revert` took back stays above what was made after it; else the nearest of all.
        """
        changed, nearest, passed = Programs(), "", list[str]()
        for above in self._above(commit):
            if above in self._bare or (nearest and len(passed) > FARTHEST):
                break
            changed = changed or self._programs(above)
            if above in rows and self._programs(above) == changed:
                return above
            nearest = nearest or (above if above in rows else "")
            passed.append(above)
        self._bare |= set() if nearest else set(passed)
        return nearest

    def _above(self, commit: str) -> Iterator[str]:
        """The first parents of a commit, nearest first."""
        while parents := self.repository.branches.parents(commit):
            commit = parents[0]
            yield commit

    def _programs(self, commit: str) -> Programs:
        entries = self.repository.trees.entries(self.repository.tree_of(commit))
        inside = ((each.path[len(self._prefix) :], each) for each in entries if each.path.startswith(self._prefix))
        return tuple((path, each.blob) for path, each in inside if each.is_file and self._is_program(path))
