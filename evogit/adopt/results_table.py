"""Reads autoresearch's results.tsv: a row for each experiment, whose program is in the commit that it names."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from evogit.adopt.past import Past, PastRun, finite, in_order
from evogit.core import NotFoundError
from evogit.repository import Repository

NAMES = ("results.tsv", "autoresearch-results.tsv")
COMMITS = ("commit", "commit_hash", "hash", "sha")
"""What the column of commits is called."""
SCORES = ("score", "metric", "metric_value", "value")
"""What the column of scores is called, where it is not called as the task's metric is."""
COMMIT = re.compile(r"[0-9a-f]{7,40}")
FAILED = frozenset({"crash", "crashed", "error", "fail", "failed", "oom", "timeout"})
KEPT = frozenset({"baseline", "keep", "kept"})
AUTORESEARCH = "autoresearch"


def find_table(path: Path) -> Path | None:
    """The table in a folder, or the file itself."""
    files = [path / name for name in NAMES] if path.is_dir() else [path] if path.name in NAMES else []
    return next((file for file in files if file.is_file()), None)


def read_table(file: Path, program: str, metric: str) -> PastRun:
    """The rows whose commits Git still has, each once; what was set back may be gone.

    Raises:
        NotFoundError: there is none.
    """
    git = _Git(file.parent, program)
    table = _Table.of(file.read_text(encoding="utf-8", errors="replace"), metric)
    found: dict[str, Past] = {}
    for row in table.rows:
        commit = git.commit(table.commit(row))
        if not commit or commit in found:
            continue
        value, status = table.value(row), table.told(row).get("status", "").strip()
        found[commit] = Past(
            id=commit,
            files=git.files(commit),
            value=value,
            parent=git.made_of(commit),
            title=table.told(row).get("description", "").strip() or commit[:7],
            failure=status if value is None else "",
            told=table.told(row),
            time=git.repository.commit_time(commit),
        )
    if not found:
        raise NotFoundError(
            f"{file} has {len(table.rows)} rows; none names a commit that Git still has (7 hexadecimal digits or more)"
        )
    return PastRun(AUTORESEARCH, in_order(list(found.values())), len(table.rows) - len(found))


class _Table(Struct, frozen=True):
    """The rows of a table; `id` and `score` are the columns of commits and scores, in it or by its `header`."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    id: int
    score: int

    @classmethod
    def of(cls, text: str, metric: str) -> _Table:
        """Read it; the first line is a header unless it names a commit."""
        lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
        rows = [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)]
        header = rows[0] if rows and not any(map(COMMIT.fullmatch, rows[0])) else []
        rows = rows[bool(header) :]
        names = [name.casefold() for name in header]
        at = next((names.index(name) for name in COMMITS if name in names), 0)
        numbers = [place for place in range(at + 1, max(map(len, rows), default=0)) if _are_numbers(rows, place)]
        scores = [names.index(name) for name in (metric.casefold(), *SCORES) if name in names] + numbers
        return cls(header, rows, at, next(iter(scores), at + 1))

    def commit(self, row: Sequence[str]) -> str:
        """What a row says that its commit is; empty where it says none."""
        said = row[self.id] if self.id < len(row) else ""
        return said if COMMIT.fullmatch(said) else ""

    def told(self, row: Sequence[str]) -> dict[str, str]:
        """Name of a column -> what a row says."""
        return dict(zip(self.header, row, strict=False))

    def value(self, row: Sequence[str]) -> float | None:
        """The score of a row; None where it failed, or is all zeros and was not kept."""
        status = self.told(row).get("status", "").strip().casefold()
        value = _number(row[self.score]) if self.score < len(row) else None
        others = [number for cell in row[self.id + 1 :] if (number := _number(cell)) is not None]
        return None if status in FAILED or (status and status not in KEPT and not any(others)) else value


def _are_numbers(rows: Sequence[Sequence[str]], place: int) -> bool:
    """Whether most rows have a number there."""
    return 2 * sum(place < len(row) and _number(row[place]) is not None for row in rows) > len(rows)


def _number(text: str) -> float | None:
    try:
        return finite(float(text))
    except ValueError:
        return None


class _Git:
    """The repository of a table, and the program that its rows are about, which lies beside the table."""

    def __init__(self, folder: Path, program: str) -> None:
        self.repository = Repository.discover(folder)
        root = next(each for each in (folder.resolve(), *folder.resolve().parents) if (each / ".git").exists())
        self._program = program
        self._known: dict[str, str] = {}  # a program's blob -> the first commit that has it
        self._place = (folder.resolve().relative_to(root) / program).as_posix()

    def commit(self, said: str) -> str:
        """The commit that a row names; empty where there is none."""
        try:
            return self.repository.branches.commit(said) if said else ""
        except NotFoundError:
            return ""

    def files(self, commit: str) -> dict[str, bytes]:
        """The program as it is in a commit."""
        blob = self._blob(commit)
        return {self._program: self.repository.trees.blob(blob)} if blob else {}

    def made_of(self, commit: str) -> str:
        """Which of the commits that were asked about before it was made of; empty for the first.

        The nearest above it, or one whose program is that of a commit above: commits of logs lie in between, and what
        `git revert` took back stays above what was made after it.
        """
        own, found = self._blob(commit), ""
        for above in self._above(commit):
            blob = self._blob(above)
            found = above if above in self._known.values() else self._known.get(blob, "") if blob != own else ""
            if found:
                break
        self._known.setdefault(own, commit)
        return found

    def _above(self, commit: str) -> Iterator[str]:
        """The first parents of a commit, nearest first."""
        while parents := self.repository.branches.parents(commit):
            commit = parents[0]
            yield commit

    def _blob(self, commit: str) -> str:
        entries = self.repository.trees.entries(self.repository.tree_of(commit))
        return next((entry.blob for entry in entries if entry.path == self._place), "")
