"""Finds the run of another system at a path, and reads it: checkpoints of OpenEvolve and SkyDiscover, a database.

The database is ShinkaEvolve's, also that of a run at work.
"""

from __future__ import annotations

import re
import sqlite3
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from evogit.adopt.experiment_logs import find_log, find_table, read_log, read_table
from evogit.adopt.openevolve import FEATURES
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
from evogit.core import ConfigError, NotFoundError, UsageError

EXPECTED_RUNS = (
    "a checkpoint of OpenEvolve or SkyDiscover (programs/*.json; the first is there after `checkpoint_interval` "
    "iterations), a ShinkaEvolve database (*.sqlite, *.db) or an autoresearch repository "
    "(results.tsv, .auto/log.jsonl, autoresearch.jsonl)"
)
SKYDISCOVER = "SkyDiscover"
CODE = {"code": "OpenEvolve", "solution": SKYDISCOVER}  # the key of a program's text -> the system that calls it so
NO_SCORES = frozenset({"error", "stage1_passed"})  # numbers that say nothing of a program but that it failed
REASONS = ("error", "error_message", "stderr", "failure_stage")
"""Artifacts that say why a program failed, the plainest first."""
NEEDED = frozenset({"id", "code", "combined_score"})  # columns without which nothing can be told of a program
MAGIC = b"SQLite format 3"
NAME = "copy.sqlite"
MAX_ROWS = 200_000
MAX_SQL_DEPTH = 100  # expressions within each other
STEPS, MAX_STEPS = 100_000, 100_000_000
"""Steps of SQLite's machine between two looks at how many there were, and at most."""
TRIES = 5  # copies of a database at work, until one is whole


def read_past(path: Path, program: str, metric: str, is_program: Callable[[str], bool] | None = None) -> PastRun:
    """Read the run at a path; `program` is the file that was evolved, `metric` the name of its score.

    `is_program` tells which files were evolved if these are several, which a session of pi-autoresearch may have;
    `program` is empty then.

    Raises:
        NotFoundError: there is none, naming what was looked for, or nothing of it can be read.
        UsageError: there are several, or several files were evolved.
    """
    table = find_table(path)
    if table is None and (log := find_log(path)):
        return read_log(*log, is_program or program.__eq__, metric)
    if not program:
        raise UsageError(f"expected a task with one file that may change, as {path} is no session of pi-autoresearch")
    if folders := _find_checkpoints(path):
        return _read_checkpoints(folders, program)
    if table:
        return read_table(table, program, metric)
    if database := _find_database(path):
        return _read_database(database, program)
    raise NotFoundError(f"{path} holds no run of another system; expected {EXPECTED_RUNS}")


# --- checkpoints of OpenEvolve and SkyDiscover --------------------------------------------------------------------


def _find_checkpoints(path: Path) -> Sequence[Path]:
    """Return the folders of checkpoints at a path, the latest first: it alone if it is one, else all of the run below.

    Raises:
        UsageError: several runs are below it.
    """
    if (path / "programs").is_dir():
        return [path]
    below = (path / place / name for place, folders, _ in folders_below(path) for name in folders)
    named = (each for each in below if each.name.startswith("checkpoint_") and (each / "programs").is_dir())
    checkpoints = [each for each in named if each.resolve().is_relative_to(path.resolve())]
    only_one(path, {each.parent for each in checkpoints})
    return sorted(checkpoints, key=lambda each: int("0" + re.sub("[^0-9]", "", each.name)[-18:]), reverse=True)


def _read_checkpoints(folders: Sequence[Path], program: str) -> PastRun:
    """Read all programs that any of the checkpoints has, as later ones have dropped some, or are not whole.

    Raises:
        NotFoundError: there is no program in them, or none that can be read.
    """
    records, unread = _programs(folders)
    if not records:
        raise NotFoundError(_why_none(folders[0] / "programs", unread))
    stats = (object_of(find_text(each, "metadata.json", MAX_PROGRAM_BYTES)).get("feature_stats") for each in folders)
    features = next((frozenset(each) for each in stats if isinstance(each, dict) and each), FEATURES)
    made = sorted(
        records.values(),
        key=lambda each: (finite(each.get("timestamp")) or 0, finite(each.get("iteration_found")) or 0),
    )
    programs = [_past_program(each, program, features) for each in made]
    return PastRun(CODE[_code(made[0])], in_order(programs), len(unread))


def _programs(folders: Sequence[Path]) -> tuple[dict[str, dict[str, Any]], set[str]]:
    """Return name of a file -> the latest record of its program; and files that are whole in no checkpoint."""
    records: dict[str, dict[str, Any]] = {}
    unread = set()
    room = MAX_RUN_BYTES
    for folder in folders:
        for file in sorted((folder / "programs").glob("*.json")):
            if file.name in records:
                continue
            text = find_text(folder, f"programs/{file.name}", min(room, MAX_PROGRAM_BYTES))
            room -= len(text)
            record = object_of(text)
            if isinstance(record.get(_code(record)), str) and "id" in record:
                records[file.name] = record
            else:
                unread.add(file.name)
    return records, unread - records.keys()


def _code(record: Mapping[str, Any]) -> str:
    return next((name for name in CODE if name in record), "code")


def _why_none(folder: Path, unread: Collection[str]) -> str:
    """Explain why nothing could be read."""
    if not unread:
        return f"{folder} has no program yet; give an earlier checkpoint, or import it once there is a later one"
    first = min(unread)
    names = ", ".join(object_of(find_text(folder.parent, f"programs/{first}", MAX_PROGRAM_BYTES)))
    return (
        f"{folder} has {len(unread)} files, and none has a program: expected id, and code (OpenEvolve) or solution "
        f"(SkyDiscover), got in {first}: {names or 'no JSON object that is whole'}"
    )


def _past_program(record: Mapping[str, Any], program: str, features: Collection[str]) -> Past:
    code = _code(record)
    metrics, about = object_of(record.get("metrics")), object_of(record.get("metadata"))
    artifacts = object_of(record.get("artifacts_json") or record.get("artifacts"))
    number = record.get("iteration_found")
    made = f"program {record['id']}" if number is None else f"iteration {number}"
    value = _fitness(metrics, () if CODE[code] == SKYDISCOVER else features)
    moves: dict[str, Any] = {name: about[name] for name in ("island", "migrated_from", "migrated_to") if name in about}
    places: dict[str, Any] = {"iteration": number, "generation": record.get("generation"), **moves}
    texts = {name: str(text) for name, text in metrics.items() if finite(text) is None}
    return Past(
        id=str(record["id"]),
        files={program: record[code].encode(errors="replace")},
        value=value,
        parent=str(record.get("parent_id") or ""),
        shown=tuple(map(str, list_of(record.get("other_context_ids")))),
        title=_title(str(record.get("changes_description") or about.get("changes") or made)),
        failure="" if value is not None else _reason(metrics, artifacts),
        numbers=numbers_of(metrics),
        told={**{name: str(place) for name, place in places.items() if place is not None}, **texts},
        feedback="\n".join(f"[{name}] {text}" for name, text in artifacts.items()),
        time=moment(record.get("timestamp")),
    )


def _title(changes: str) -> str:
    """Return the title of a change: of one that is told as lines to replace, the first new one."""
    new = re.match(r"Change \d+: Replace:\n(?:.*\n)*?with:\s{1,80}(.+)", changes)
    if new:
        return new[1].strip()
    return changes if "Change 2:" in changes else changes.removeprefix("Change 1: ")


def _fitness(metrics: Mapping[str, Any], features: Collection[str]) -> float | None:
    """Return the number that ranks a program there; None if there are only signs of a failure."""
    if "combined_score" in metrics:
        score = metrics["combined_score"]
        with suppress(ValueError):
            return finite(float(score) if isinstance(score, str) else score)
        return None
    numbers = numbers_of(metrics)
    if numbers.keys() <= NO_SCORES:
        return None
    ranking = [number for name, number in numbers.items() if name not in features] or list(numbers.values())
    return sum(ranking) / len(ranking)


def _reason(metrics: Mapping[str, Any], artifacts: Mapping[str, Any]) -> str:
    """Return why a program has no score: mostly the last line of what was caught."""
    texts = {**artifacts, **{name: text for name, text in metrics.items() if isinstance(text, str)}}
    if metrics.get("timeout") is True:
        return f"timeout in {texts.get('failure_stage', 'the evaluation')}"
    caught = (str(texts.get(name) or "").strip().splitlines() for name in REASONS)
    score = [f"combined_score is {metrics['combined_score']}"] if "combined_score" in metrics else []
    stages = [f"it failed in {name.removesuffix('_passed')}" for name in metrics if name.endswith("_passed")]
    return next(iter([*(lines[-1] for lines in caught if lines), *score, *stages]), "")


# --- the database of ShinkaEvolve ---------------------------------------------------------------------------------


def _find_database(path: Path) -> Path | None:
    """Return the file of a database, itself or the one with programs below a results folder.

    Raises:
        UsageError: there are several.
    """
    if path.is_file():
        return path if _is_database(path.parent, path.name) else None
    files = [below + name for below, _, names in folders_below(path) for name in names]
    found = [path / each for each in files if each.endswith((".sqlite", ".db")) and _has_programs(path, each)]
    only_one(path, found)
    return next(iter(found), None)


def _read_database(file: Path, program: str) -> PastRun:
    """Read the programs of a database.

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
    programs = [_past_row(row, program, file.parent) for row in whole]
    return PastRun("ShinkaEvolve", in_order(programs), len(rows) - len(whole))


def _is_database(root: Path, path: str) -> bool:
    with suppress(ConfigError), open_at(root, path) as opened:
        return opened.read(len(MAGIC)) == MAGIC
    return False


def _has_programs(root: Path, path: str) -> bool:
    """Return whether a file has a table of programs, or cannot tell, as it is damaged."""
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
    """Return all programs of a database.

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
    """Open a copy of a database to be read; a query of a stranger's schema ends after so many steps.

    A copy, as what is opened is written to, and may be at work.
    """
    _copy(root, path, scratch)
    database = sqlite3.connect(scratch / NAME)
    database.row_factory = sqlite3.Row
    database.text_factory = lambda data: data.decode(errors="replace")
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_PROGRAM_BYTES)
    database.setlimit(sqlite3.SQLITE_LIMIT_EXPR_DEPTH, MAX_SQL_DEPTH)
    ticks = iter(range(MAX_STEPS // STEPS))
    database.set_progress_handler(lambda: next(ticks, None) is None, STEPS)
    for pragma in ("trusted_schema = OFF", "cell_size_check = ON", "query_only = ON"):
        database.execute(f"PRAGMA {pragma}")
    return database


def _has_table(database: sqlite3.Connection) -> bool:
    """Return whether the programs are in a plain table: views, virtual tables and computed columns run code."""
    listed = database.execute("SELECT type, sql FROM sqlite_master WHERE name = 'programs' COLLATE NOCASE").fetchall()
    if [row["type"] for row in listed] != ["table"] or not re.match(r"CREATE TABLE\b", str(listed[0]["sql"]), re.I):
        return False
    return all(column["hidden"] == 0 for column in database.execute("PRAGMA table_xinfo(programs)"))


def _copy(root: Path, path: str, scratch: Path) -> None:
    """Copy a database with what its run has not yet moved into it, again if that was written to meanwhile.

    Raises:
        ConfigError: it is no file of the folder, or has too many bytes.
    """
    parts = (root / path, root / f"{path}-wal")

    def written() -> list[tuple[int, int]]:
        return [(stat.st_mtime_ns, stat.st_size) for part in parts if part.exists() and (stat := part.stat())]

    for _ in range(TRIES):
        before = written()
        (scratch / NAME).write_bytes(file_at(root, path, MAX_RUN_BYTES)[0])
        (scratch / f"{NAME}-wal").unlink(missing_ok=True)
        if has_file(root, f"{path}-wal"):
            (scratch / f"{NAME}-wal").write_bytes(file_at(root, f"{path}-wal", MAX_RUN_BYTES)[0])
        if before == written():
            return


def _past_row(row: Mapping[str, Any], program: str, results: Path) -> Past:
    about, generation = object_of(row.get("metadata")), row.get("generation")
    value = finite(row["combined_score"]) if row.get("correct", 1) else None
    description, feedback = about.get("patch_description"), row.get("text_feedback")
    shown = [*list_of(row.get("archive_inspiration_ids")), *list_of(row.get("top_k_inspiration_ids"))]
    incorrect = object_of(find_text(results, f"gen_{generation}/results/correct.json")) if value is None else {}
    return Past(
        id=str(row["id"]),
        files={program: row["code"].encode(errors="replace")},
        value=value,
        parent=str(row.get("parent_id") or ""),
        shown=tuple(map(str, shown)),
        title=str(about.get("patch_name") or description or f"generation {generation}"),
        failure="" if value is not None else str(incorrect.get("error") or "it is not correct"),
        numbers=numbers_of(object_of(row.get("public_metrics"))),
        told=dict(_places(row, about)),
        feedback="\n".join(map(str, list_of(feedback))) or str(feedback or ""),
        time=moment(row.get("timestamp")),
    )


def _places(row: Mapping[str, Any], about: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    values = {"generation": row.get("generation"), "island": row.get("island_idx"), "patch": about.get("patch_type")}
    values["description"] = about.get("patch_description") or None
    yield from ((name, str(value)) for name, value in values.items() if value is not None)
