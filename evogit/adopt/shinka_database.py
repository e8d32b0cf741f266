"""Reads the database of ShinkaEvolve, also of a run at work."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from evogit.adopt.past import Past, PastRun, finite, in_order, list_of, moment, numbers_of, object_of, only_one, text_of
from evogit.core import NotFoundError

NEEDED = frozenset({"id", "code", "combined_score"})
"""Columns without which nothing can be told of a program."""
MAGIC = b"SQLite format 3"
TRIES = 5
"""Copies of a database at work, until one is whole."""


def find_database(path: Path) -> Path | None:
    """The file of a database, itself or the one with programs below a results folder.

    Raises:
        UsageError: there are several.
    """
    if path.is_file():
        return path if _is_database(path) else None
    found = [each for ending in ("sqlite", "db") for each in path.glob(f"**/*.{ending}") if _has_programs(each)]
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


def _is_database(file: Path) -> bool:
    with file.open("rb") as opened:
        return opened.read(len(MAGIC)) == MAGIC


def _has_programs(file: Path) -> bool:
    """Whether a file has a table of programs, or cannot tell, as it is damaged."""
    if not file.is_file() or not _is_database(file):
        return False
    try:
        _rows(file)
    except sqlite3.OperationalError:
        return False
    except sqlite3.DatabaseError:
        return True
    return True


def _rows(file: Path) -> list[dict[str, Any]]:
    """All programs of a database.

    Raises:
        sqlite3.Error: it is not whole, or has no table of programs.
    """
    with tempfile.TemporaryDirectory() as scratch:  # a copy: what is opened is written to, and may be at work
        _copy(file, Path(scratch))
        with closing(sqlite3.connect(Path(scratch) / file.name)) as database:
            database.row_factory = sqlite3.Row
            return list(map(dict, database.execute("SELECT * FROM programs ORDER BY rowid")))


def _copy(file: Path, scratch: Path) -> None:
    """Copy a database with what its run has not yet moved into it, again where that was written to meanwhile."""
    parts = [file, file.with_name(f"{file.name}-wal")]
    for _ in range(TRIES):
        before = _written(parts)
        for part in parts:
            (scratch / part.name).unlink(missing_ok=True)
            with suppress(FileNotFoundError):
                shutil.copy(part, scratch)
        if before == _written(parts):
            return


def _written(parts: Sequence[Path]) -> list[tuple[int, int]]:
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
    found = object_of(text_of(results / f"gen_{generation}" / "results" / "correct.json"))
    return str(found.get("error") or "it is not correct")


def _feedback(said: object) -> str:
    """What the evaluator said, which may be several texts."""
    return "\n".join(map(str, list_of(said))) or str(said or "")
