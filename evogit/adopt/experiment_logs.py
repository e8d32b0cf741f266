"""Reads the logs of autoresearch: `results.tsv`, and the log of a session (`.auto/log.jsonl`, `autoresearch.jsonl`).

Each has a row for an experiment, whose program is in the commit that it names. Of a session only experiments that were
kept have a commit of their own: of all others Git has the program that they began with. A line with `"type": "config"`
begins a segment, whose numbers are not comparable with those before it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct

from evogit.adopt.autoresearch import LAYOUTS, plain_name
from evogit.adopt.past import MAX_PROGRAM_BYTES, Past, PastRun, finite, in_order, moment, numbers_of, object_of
from evogit.contained import has_file, lines_of, text_at
from evogit.core import NotFoundError
from evogit.repository import Repository

COMMIT = re.compile(r"[0-9a-f]{7,40}")
"""The name of a commit in a log; any other name, such as HEAD, leads to another one each time."""
FARTHEST = 500
"""Commits above one of a row among which it is looked for the program that was changed, where some row's is near."""

Programs = tuple[tuple[str, str], ...]  # path and blob of each file of a program, in order
NAMES = ("results.tsv", "autoresearch-results.tsv")
COMMITS = ("commit", "commit_hash", "hash", "sha")  # names of the column of commits
SCORES = ("score", "metric", "metric_value", "value")
"""Names of the column of scores, if it does not have the metric's name."""
FAILED = frozenset({"crash", "crashed", "error", "fail", "failed", "oom", "timeout"})
DISCARDED = frozenset({"abort", "aborted", "discard", "discarded", "reject", "rejected", "revert", "reverted"})
MAX_COLUMNS = 100
AUTORESEARCH = "autoresearch"
KEPT = "keep"
MAX_COLUMN_CHARS = 2000  # characters of what a row tells beside its numbers


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


def find_table(path: Path) -> Path | None:
    """The table in a folder, or the file itself."""
    files = [path / name for name in NAMES] if path.is_dir() else [path] if path.name in NAMES else []
    return next((file for file in files if has_file(file.parent, file.name)), None)


def read_table(file: Path, program: str, metric: str) -> PastRun:
    """Read the rows whose commits Git still has, each once; what was set back may be gone.

    Raises:
        NotFoundError: there is none, or no column has commits.
    """
    lines = [line.split("\t", MAX_COLUMNS) for line in lines_of(text_at(file.parent, file.name, MAX_PROGRAM_BYTES))]
    lines = [line for line in lines if not line[0].startswith("#") or len(line) > 1]  # a comment, or the header
    header = [name.strip().casefold().lstrip("# ") for name in lines[0]] if lines else []
    column = next((name for name in COMMITS if name in header), "")
    table = [dict(zip(header, map(str.strip, line), strict=False)) for line in lines[1:]]
    if not table or not column:
        raise NotFoundError(f"{file} has no rows yet; expected a header with `commit`, and a row for each experiment")
    git = LoggedCommits(file, file.parent, lambda path: path == program)
    rows: dict[str, dict[str, str]] = {}
    for row in table:
        if commit := git.commit(row.get(column, "")):
            rows.setdefault(commit, row)
    if not rows:
        raise NotFoundError(
            f"{file} has {len(table)} rows; none names a commit that Git still has (7 hexadecimal digits or more)"
        )
    score = next((name for name in (metric.casefold(), *SCORES) if name in header), "")
    for name in header[header.index(column) + 1 :] if not score else ():
        if 2 * sum(_number(row.get(name, "")) is not None for row in table) > len(table):
            score = name
            break
    programs = []
    for commit, row in rows.items():
        failure = _failure(row, column)
        numbers = {name: number for name, cell in row.items() if (number := _number(cell)) is not None}
        programs.append(
            Past(
                id=commit,
                files=git.files(commit),
                value=None if failure else _number(row.get(score, "")),
                parent=git.made_of(commit, rows.keys()),
                title=row.get("description") or commit[:7],
                failure=failure,
                numbers={} if failure else {name: n for name, n in numbers.items() if name != column},
                told=row,
                time=git.repository.commit_time(commit),
            )
        )
    return PastRun(AUTORESEARCH, in_order(programs), len(table) - len(rows))


def _failure(row: Mapping[str, str], column: str) -> str:
    """Return how an experiment failed, whatever the column of that is called; a broken-off one is all zeros."""
    words = {cell.casefold() for cell in row.values()}
    cells = list(row)[list(row).index(column) + 1 :]
    broken_off = words & DISCARDED if not any(_number(row[name]) for name in cells) else set()
    return min(words & FAILED | broken_off, default="")


def _number(text: str) -> float | None:
    try:
        return finite(float(text))
    except ValueError:
        return None


class _Segment(Struct, frozen=True):
    """The experiments since a line with the configuration, and the metric that it names."""

    metric: str
    rows: Sequence[dict[str, Any]]


def find_log(path: Path) -> tuple[Path, Path] | None:
    """The log at a path, the file itself or that of a session's folder, and the folder of the session."""
    for layout in LAYOUTS:
        inner = Path(layout.log).parent
        for folder in (path, *(path.parents[:2] if path.name in (Path(layout.log).name, inner.name) else ())):
            log = folder / layout.log
            if path in (folder, log, folder / inner) and has_file(folder, layout.log):
                return log, folder
    return None


def read_log(log: Path, folder: Path, is_program: Callable[[str], bool], metric: str) -> PastRun:
    """The kept experiments of the last segment whose commits Git still has, each once.

    Raises:
        NotFoundError: there is none, or the log is about another metric than the task's.
    """
    segments = _segments(text_at(folder, log.relative_to(folder).as_posix(), MAX_PROGRAM_BYTES))
    rows = segments[-1].rows if segments else ()
    if not rows:
        raise NotFoundError(f"{log} has no experiment yet; expected a line for each, with its commit")
    if segments[-1].metric and plain_name(segments[-1].metric) != metric:
        raise NotFoundError(f"{log} is about {segments[-1].metric}, the task about {metric}; name the task with --task")
    git = LoggedCommits(log, folder, is_program)
    kept: dict[str, dict[str, Any]] = {}
    for row in rows:
        if row.get("status") == KEPT and (commit := git.commit(str(row.get("commit") or ""))):
            kept.setdefault(commit, row)
    if not kept:
        raise NotFoundError(
            f"{log}: of {len(rows)} experiments none was kept and names a commit that Git still has; the programs of "
            "the others are gone"
        )
    programs = [
        Past(
            id=commit,
            files=git.files(commit),
            value=finite(row.get("metric")),
            parent=git.made_of(commit, kept.keys()),
            title=str(row.get("description") or commit[:7]),
            numbers=numbers_of(object_of(row.get("metrics"))),
            told=_columns(row),
            time=moment((finite(row.get("timestamp")) or 0) // 1000) or git.repository.commit_time(commit),
        )
        for commit, row in kept.items()
    ]
    return PastRun(AUTORESEARCH, in_order(programs), sum(len(each.rows) for each in segments) - len(kept))


def _segments(text: str) -> list[_Segment]:
    """The segments of a log that have experiments, in order; lines that are no JSON are passed over."""
    found, metric, rows = list[_Segment](), "", list[dict[str, Any]]()
    for line in text.splitlines():
        with suppress(ValueError, RecursionError, MemoryError):
            said = json.loads(line)
            if isinstance(said, dict) and said.get("type") == "config":
                found += [_Segment(metric, rows)] if rows else []
                metric, rows = str(said.get("metricName") or metric), []
            elif isinstance(said, dict) and finite(said.get("run")) is not None:
                rows.append(said)
    return [*found, _Segment(metric, rows)] if rows else found


def _columns(row: dict[str, Any]) -> dict[str, str]:
    """Return the title and the parent of a row's program."""
    notes = {name: text for name, text in object_of(row.get("asi")).items() if isinstance(text, str)}
    told = {name: row[name] for name in ("run", "status", "confidence") if row.get(name) is not None}
    return {name: str(value)[:MAX_COLUMN_CHARS] for name, value in {**told, **notes}.items()}
