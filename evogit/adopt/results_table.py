"""Reads autoresearch's results.tsv: a row for each experiment, whose program is in the commit that it names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from evogit.adopt.commits import COMMIT, LoggedCommits
from evogit.adopt.past import MAX_PROGRAM_BYTES, Past, PastRun, finite, in_order
from evogit.contained import has_file, lines_of, text_at
from evogit.core import NotFoundError

NAMES = ("results.tsv", "autoresearch-results.tsv")
COMMITS = ("commit", "commit_hash", "hash", "sha")
"""What the column of commits is called."""
SCORES = ("score", "metric", "metric_value", "value")
"""What the column of scores is called, where it is not called as the task's metric is."""
FAILED = frozenset({"crash", "crashed", "error", "fail", "failed", "oom", "timeout"})
DISCARDED = frozenset({"abort", "aborted", "discard", "discarded", "reject", "rejected", "revert", "reverted"})
MAX_COLUMNS = 100
AUTORESEARCH = "autoresearch"


def find_table(path: Path) -> Path | None:
    """The table in a folder, or the file itself."""
    files = [path / name for name in NAMES] if path.is_dir() else [path] if path.name in NAMES else []
    return next((file for file in files if has_file(file.parent, file.name)), None)


def read_table(file: Path, program: str, metric: str) -> PastRun:
    """The rows whose commits Git still has, each once; what was set back may be gone.

    Raises:
        NotFoundError: there is none.
    """
    table = _Table.of(text_at(file.parent, file.name, MAX_PROGRAM_BYTES), metric)
    if not table.rows:
        raise NotFoundError(f"{file} has no rows yet; expected one for each experiment, with its commit")
    git = LoggedCommits(file, file.parent, lambda path: path == program)
    rows: dict[str, Sequence[str]] = {}
    for row in table.rows:
        if commit := git.commit(table.commit(row)):
            rows.setdefault(commit, row)
    if not rows:
        raise NotFoundError(
            f"{file} has {len(table.rows)} rows; none names a commit that Git still has (7 hexadecimal digits or more)"
        )
    programs = [
        Past(
            id=commit,
            files=git.files(commit),
            value=table.value(row),
            parent=git.made_of(commit, rows.keys()),
            title=table.told(row).get("description") or commit[:7],
            failure=table.failure(row),
            numbers=table.numbers(row),
            told=table.told(row),
            time=git.repository.commit_time(commit),
        )
        for commit, row in rows.items()
    ]
    return PastRun(AUTORESEARCH, in_order(programs), len(table.rows) - len(rows))


class _Table(Struct, frozen=True):
    """The rows of a table; `id` and `score` are the columns of commits and scores, in it or by its `header`."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    id: int
    score: int

    @classmethod
    def of(cls, text: str, metric: str) -> _Table:
        """Read it; the first line is a header unless it names a commit."""
        lines = [line.split("\t", MAX_COLUMNS)[:MAX_COLUMNS] for line in lines_of(text)]
        rows = [[cell.strip() for cell in row] for row in lines if not row[0].startswith("#") or _is_header(row)]
        header = rows[0] if rows and not any(map(COMMIT.fullmatch, rows[0])) else []
        rows = rows[bool(header) :]
        names = [name.casefold().lstrip("# ") for name in header]
        width = range(max(map(len, rows), default=0))
        at = next((names.index(name) for name in COMMITS if name in names), None)
        if at is None:
            at = max(width, key=lambda place: _share(rows, place, COMMIT.fullmatch), default=0)
        numbers = [place for place in width[at + 1 :] if _share(rows, place, _is_number) > 1 / 2]
        scores = [names.index(name) for name in (metric.casefold(), *SCORES) if name in names] + numbers
        return cls(names, rows, at, next(iter(scores), at + 1))

    def commit(self, row: Sequence[str]) -> str:
        """What a row says that its commit is; empty where it says none."""
        said = row[self.id] if self.id < len(row) else ""
        return said if COMMIT.fullmatch(said) else ""

    def told(self, row: Sequence[str]) -> dict[str, str]:
        """Name of a column -> what a row says."""
        return dict(zip(self.header, row, strict=False))

    def numbers(self, row: Sequence[str]) -> dict[str, float]:
        """What a row measured, such as memory; nothing where it failed, whose zeros are no measurements."""
        if self.failure(row):
            return {}
        commit = self.header[self.id] if self.header else ""
        return {name: n for name, cell in self.told(row).items() if name != commit and (n := _number(cell)) is not None}

    def failure(self, row: Sequence[str]) -> str:
        """How an experiment failed, whatever the column of that is called; one that was broken off is all zeros."""
        words = {cell.casefold() for cell in row}
        first = min(self.id, self.score)  # what stands before may be a running number
        numbers = [_number(cell) for place, cell in enumerate(row) if place >= first and place != self.id]
        broken_off = words & DISCARDED if not any(numbers) else set()
        return min(words & FAILED | broken_off, default="")

    def value(self, row: Sequence[str]) -> float | None:
        """The score of a row; None where it failed."""
        return _number(row[self.score]) if self.score < len(row) and not self.failure(row) else None


def _is_header(row: Sequence[str]) -> bool:
    """Whether a line that begins as a comment is the header."""
    return any(name.casefold().strip("# ") in COMMITS for name in row)


def _share(rows: Sequence[Sequence[str]], place: int, has: Callable[[str], object]) -> float:
    """The share of rows whose cell there is of a kind."""
    return sum(place < len(row) and bool(has(row[place])) for row in rows) / len(rows)


def _is_number(cell: str) -> bool:
    return _number(cell) is not None


def _number(text: str) -> float | None:
    try:
        return finite(float(text))
    except ValueError:
        return None
