"""Reads the database of ShinkaEvolve, also of a run at work."""

from __future__ import annotations

import re
import sqlite3
import tempfile
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from evogit.adopt.past import (
    MAX_PROGRAM_BYTES,
    MAX_RUN_BYTES,
    Past,
    PastRun,
    finite,
    in_order,
    list_of,
    moment,
    numbers_of,
    object_of,
    only_one,
)
from evogit.contained import file_at, find_text, folders_below, has_file, open_at
from evogit.core import ConfigError, NotFoundError

NEEDED = frozenset({"id", "code", "combined_score"})
"""Columns without which nothing can be told of a program."""
MAGIC = b"SQLite format 3"
NAME = "copy.sqlite"
MAX_ROWS = 200_000
MAX_DEPTH = 100
"""Expressions within each other."""
STEPS = 100_000
"""Steps of SQLite's machine between two looks at how many there were."""
MAX_STEPS = 100_000_000
TRIES = 5
"""Copies of a database at work, until one is whole."""


def find_database(path: Path) -> Path | None:
    """The file of a database, itself or the one with programs below a results folder.

    Raises:
        UsageError: there are several.
    """
    if path.is_file():
        return path if _is_database(path.parent, path.name) else None
    files = [below + name for below, _, names in folders_below(path) for name in names]
    databases = (each for ending in (".sqlite", ".db") for each in files if each.endswith(ending))
    found = [path / each for each in databases if _has_programs(path, each)]
    only_one(path, found)
    return next(iter(found), None)


def read_database(file: Path, program: str) -> PastRun:
    """The programs of a database.

    Raises:
        NotFoundError: it has none, or is not whole, or has other columns than those that are known.
    """
    try:
        rows = _rows(file)
    except sqlite3.Error as error:
        raise NotFoundError(f"{file} is no database of ShinkaEvolve that can be read: {error}") from None
    if not rows:
        raise NotFoundError(f"{file} has no program yet; import it once its run has evaluated one")
    if missing := NEEDED - rows[0].keys():
        raise NotFoundError(
            f"{file} has programs without {', '.join(sorted(missing))}, as no version of ShinkaEvolve does that is "
            f"known; it has the columns {', '.join(rows[0])}"
        )
    whole = [row for row in rows if isinstance(row["code"], str)]
    whole.sort(key=lambda row: finite(row.get("timestamp")) or 0)
    programs = [_past(row, program, file.parent) for row in whole]
    return PastRun("ShinkaEvolve", in_order(programs), len(rows) - len(whole))


def _is_database(root: Path, path: str) -> bool:
    with suppress(ConfigError), open_at(root, path) as opened:
        return opened.read(len(MAGIC)) == MAGIC
    return False


def _has_programs(root: Path, path: str) -> bool:
    """Whether a file has a table of programs, or cannot tell, as it is damaged."""
    if not _is_database(root, path):
        return False
    try:
        with tempfile.TemporaryDirectory() as scratch, closing(_opened(root, path, Path(scratch))) as database:
            return _has_table(database)
    except sqlite3.OperationalError:
        return False
    except sqlite3.DatabaseError:
        return True


def _rows(file: Path) -> list[dict[str, Any]]:
    """All programs of a database.

    Raises:
        sqlite3.Error: it is not whole, has no table of programs, or would give more than there is room for.
        ConfigError: it is no file of its folder, or has too many bytes.
    """
    with tempfile.TemporaryDirectory() as scratch, closing(_opened(file.parent, file.name, Path(scratch))) as database:
        if not _has_table(database):
            raise sqlite3.OperationalError("it has no plain table called programs")
        rows, room = list[dict[str, Any]](), MAX_RUN_BYTES
        for row in database.execute("SELECT * FROM programs ORDER BY rowid LIMIT ?", [MAX_ROWS + 1]):
            rows.append(dict(row))
            room -= sum(len(value) for value in row if isinstance(value, str | bytes))
            if room < 0 or len(rows) > MAX_ROWS:
                raise sqlite3.DataError(f"it has more than {MAX_ROWS:,} programs or {MAX_RUN_BYTES:,} bytes of them")
        return rows


def _opened(root: Path, path: str, scratch: Path) -> sqlite3.Connection:
    """Open a copy of a database to be read, as a query of a stranger's would be: none that does not end.

    Of a copy, as what is opened is written to, and may be at work.
    """
    _copy(root, path, scratch)
    database = sqlite3.connect(scratch / NAME)
    database.row_factory = sqlite3.Row
    database.text_factory = lambda data: data.decode(errors="replace")
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_PROGRAM_BYTES)
    database.setlimit(sqlite3.SQLITE_LIMIT_EXPR_DEPTH, MAX_DEPTH)
    database.set_progress_handler(_Steps(), STEPS)
    for pragma in ("trusted_schema = OFF", "cell_size_check = ON", "query_only = ON"):
        database.execute(f"PRAGMA {pragma}")
    return database


class _Steps:
    """Counts the calls of a progress handler, and ends the query after too many."""

    def __init__(self) -> None:
        self._left = MAX_STEPS // STEPS

    def __call__(self) -> bool:
        """Return whether to end the query."""
        self._left -= 1
        return self._left < 0


def _has_table(database: sqlite3.Connection) -> bool:
    """Return whether the programs are in a plain table: views, virtual tables and computed columns run code."""
    listed = database.execute("SELECT type, sql FROM sqlite_master WHERE name = 'programs' COLLATE NOCASE").fetchall()
    if [row["type"] for row in listed] != ["table"] or not re.match(r"CREATE TABLE\b", str(listed[0]["sql"]), re.I):
        return False
    return all(column["hidden"] == 0 for column in database.execute("PRAGMA table_xinfo(programs)"))


def _copy(root: Path, path: str, scratch: Path) -> None:
    """Copy a database with what its run has not yet moved into it, again where that was written to meanwhile.

    Raises:
        ConfigError: it is no file of the folder, or has too many bytes.
    """
    for _ in range(TRIES):
        before = _written(root, path)
        (scratch / NAME).write_bytes(file_at(root, path, MAX_RUN_BYTES)[0])
        (scratch / f"{NAME}-wal").unlink(missing_ok=True)
        if has_file(root, f"{path}-wal"):
            (scratch / f"{NAME}-wal").write_bytes(file_at(root, f"{path}-wal", MAX_RUN_BYTES)[0])
        if before == _written(root, path):
            return


def _written(root: Path, path: str) -> list[tuple[int, int]]:
    parts = (root / path, root / f"{path}-wal")
    return [(stat.st_mtime_ns, stat.st_size) for part in parts if part.exists() and (stat := part.stat())]


def _past(row: Mapping[str, Any], program: str, results: Path) -> Past:
    about, generation = object_of(row.get("metadata")), row.get("generation")
    value = finite(row["combined_score"]) if row.get("correct", 1) else None
    places = {"generation": generation, "island": row.get("island_idx"), "patch": about.get("patch_type")}
    said = about.get("patch_description")
    shown = [*list_of(row.get("archive_inspiration_ids")), *list_of(row.get("top_k_inspiration_ids"))]
    return Past(
        id=str(row["id"]),
        files={program: row["code"].encode(errors="replace")},
        value=value,
        parent=str(row.get("parent_id") or ""),
        shown=tuple(map(str, shown)),
        title=str(about.get("patch_name") or said or f"generation {generation}"),
        failure="" if value is not None else _failure(results, generation),
        numbers=numbers_of(object_of(row.get("public_metrics"))),
        told={
            **{name: str(place) for name, place in places.items() if place is not None},
            **({"description": str(said)} if said else {}),
        },
        feedback=_feedback(row.get("text_feedback")),
        time=moment(row.get("timestamp")),
    )


def _failure(results: Path, generation: object) -> str:
    """Why a program is not correct, which is kept beside the database alone."""
    found = object_of(find_text(results, f"gen_{generation}/results/correct.json"))
    return str(found.get("error") or "it is not correct")


def _feedback(said: object) -> str:
    """What the evaluator said, which may be several texts."""
    return "\n".join(map(str, list_of(said))) or str(said or "")
