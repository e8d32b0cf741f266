"""Reads what other systems found: an OpenEvolve checkpoint, a ShinkaEvolve database, autoresearch's results.tsv."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from evogit.adopt.past import Past, PastRun, finite, in_order
from evogit.adopt.results_table import find_table, read_table
from evogit.core import NotFoundError

EXPECTED = (
    "an OpenEvolve checkpoint (programs/*.json), a ShinkaEvolve database (*.sqlite, *.db) or an autoresearch "
    "repository (results.tsv)"
)


def read_past(path: Path, program: str, metric: str) -> PastRun:
    """The run at a path; `program` is the file that was evolved, `metric` what its score is called.

    Raises:
        NotFoundError: there is none, naming what was looked for, or nothing of it can be read.
    """
    if found := _checkpoint(path):
        return _openevolve(found, program)
    if found := find_table(path):
        return read_table(found, program, metric)
    if found := _database(path):
        return _shinka(found, program)
    raise NotFoundError(f"{path} holds no run of another system; expected {EXPECTED}")


# --- OpenEvolve -------------------------------------------------------------------------------------------------


def _checkpoint(path: Path) -> Path | None:
    """The folder of a checkpoint; the latest one below an output folder."""
    if (path / "programs").is_dir():
        return path
    found = [each for each in path.glob("**/checkpoint_*") if (each / "programs").is_dir()] if path.is_dir() else []
    return max(found, key=lambda each: int("0" + "".join(filter(str.isdigit, each.name))), default=None)


def _openevolve(folder: Path, program: str) -> PastRun:
    files = sorted((folder / "programs").glob("*.json"))
    read = [each for file in files if (each := _program(file))]
    read.sort(key=lambda each: (each.get("iteration_found") or 0, each.get("timestamp") or 0))
    programs = [_past(each, program) for each in read]
    if not programs:
        raise NotFoundError(f"{folder / 'programs'} has {len(files)} files, and none has a program of OpenEvolve")
    return PastRun("OpenEvolve", in_order(programs), len(files) - len(read))


def _program(file: Path) -> dict[str, Any]:
    """What a file says of a program; nothing where it is not whole, as of a run at work or killed."""
    try:
        found = json.loads(file.read_text(encoding="utf-8", errors="replace"))
    except ValueError:
        return {}
    return found if isinstance(found, dict) and {"id", "code"} <= found.keys() else {}


def _past(found: Mapping[str, Any], program: str) -> Past:
    metrics, about = found.get("metrics") or {}, found.get("metadata") or {}
    said = found.get("changes_description") or about.get("changes") or f"iteration {found.get('iteration_found')}"
    value = _fitness(metrics)
    return Past(
        id=str(found["id"]),
        files={program: str(found["code"]).encode(errors="replace")},
        value=value,
        parent=str(found.get("parent_id") or ""),
        title=_title(str(said)),
        failure="" if value is not None else str(metrics.get("error") or ""),
        told={name: str(text) for name, text in metrics.items()},
        time=int(found.get("timestamp") or 0),
    )


def _title(said: str) -> str:
    """What a change is said to be: of one that is told as lines to replace, the first new one."""
    new = re.match(r"Change \d+: Replace:\n(?:.*\n)*?with:\s+(.+)", said)
    return new[1].strip() if new else said


def _fitness(metrics: Mapping[str, Any]) -> float | None:
    """What ranks a program there; None for what only says that it failed."""
    if "combined_score" in metrics:
        return finite(metrics["combined_score"])
    numbers = {name: number for name, value in metrics.items() if (number := finite(value)) is not None}
    return sum(numbers.values()) / len(numbers) if numbers.keys() - {"error", "stage1_passed"} else None


# --- ShinkaEvolve -----------------------------------------------------------------------------------------------


def _database(path: Path) -> Path | None:
    """The file of a database of theirs, the largest one below a results folder."""
    if path.is_file():
        return path if path.read_bytes()[:15] == b"SQLite format 3" and _rows(path) is not None else None
    found = [each for ending in ("sqlite", "db") for each in path.glob(f"**/*.{ending}") if _database(each)]
    return max(found, key=lambda each: each.stat().st_size, default=None)


def _rows(file: Path) -> list[dict[str, Any]] | None:
    """All programs of a database, None where it has no table of them."""
    with tempfile.TemporaryDirectory() as scratch:  # a copy: what is opened is written to, and may be at work
        for part in file.parent.glob(f"{file.name}*"):
            shutil.copy(part, scratch)
        with closing(sqlite3.connect(Path(scratch) / file.name)) as database, suppress(sqlite3.Error):
            database.row_factory = sqlite3.Row
            return list(map(dict, database.execute("SELECT * FROM programs ORDER BY generation, timestamp")))
    return None


def _shinka(file: Path, program: str) -> PastRun:
    programs = [_of_row(row, program) for row in _rows(file) or ()]
    if not programs:
        raise NotFoundError(f"{file} has no program yet")
    return PastRun("ShinkaEvolve", in_order(programs))


def _of_row(row: Mapping[str, Any], program: str) -> Past:
    about, public = _object(row.get("metadata")), _object(row.get("public_metrics"))
    feedback = {"text_feedback": str(row["text_feedback"])} if row.get("text_feedback") else {}
    return Past(
        id=str(row["id"]),
        files={program: str(row["code"]).encode(errors="replace")},
        value=finite(row["combined_score"]) if row.get("correct", 1) else None,
        parent=str(row.get("parent_id") or ""),
        title=str(about.get("patch_name") or about.get("patch_description") or f"generation {row['generation']}"),
        told={**{name: str(value) for name, value in public.items()}, **feedback},
        time=int(row.get("timestamp") or 0),
    )


def _object(text: str | None) -> dict[str, Any]:
    """A JSON object, empty where it is none, or not whole."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
