"""Reads what other systems found: an OpenEvolve checkpoint, a ShinkaEvolve database, autoresearch's results.tsv."""

from __future__ import annotations

import csv
import json
import math
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from evogit.core import NotFoundError
from evogit.repository import Repository

EXPECTED = (
    "an OpenEvolve checkpoint (programs/*.json), a ShinkaEvolve database (*.sqlite, *.db) or an autoresearch "
    "repository (results.tsv)"
)


class Past(Struct, frozen=True):
    """A program that another system evaluated.

    Attributes:
        id: what that system calls it.
        files: path -> content of what differs from the task's seed.
        value: its score there; None where it has none, as it failed.
        parent: the id of the program that it was made of; empty where it was of none.
        title: what it is said to change.
        told: its other numbers and what was said of it.
        time: seconds since the epoch.
    """

    id: str
    files: Mapping[str, bytes]
    value: float | None
    parent: str = ""
    title: str = ""
    told: Mapping[str, str] = field(default_factory=dict)
    time: int = 0


def read_past(path: Path, program: str) -> tuple[str, list[Past]]:
    """The system that a run was one of, and its programs, parents first; `program` is the file that was evolved.

    Raises:
        NotFoundError: there is none at this path, naming what was looked for.
    """
    for system, find, read in _FORMATS:
        if found := find(path):
            return system, _in_order(list(read(found, program)))
    raise NotFoundError(f"{path} holds no run of another system; expected {EXPECTED}")


def _in_order(programs: Sequence[Past]) -> list[Past]:
    """Parents before children, else as they came."""
    known = {each.id: each for each in programs}
    ordered: dict[str, Past] = {}
    for each in programs:
        line = []
        at: Past | None = each
        while at and at.id not in ordered and at not in line:
            line.append(at)
            at = known.get(at.parent)
        ordered.update({one.id: one for one in reversed(line)})
    return list(ordered.values())


def _finite(value: Any) -> float | None:
    number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    return number if math.isfinite(number) else None


# --- OpenEvolve -------------------------------------------------------------------------------------------------


def _checkpoint(path: Path) -> Path | None:
    """The folder of a checkpoint; the latest one below an output folder."""
    if (path / "programs").is_dir():
        return path
    found = [each for each in path.glob("**/checkpoint_*") if (each / "programs").is_dir()] if path.is_dir() else []
    return max(found, key=lambda each: int("0" + "".join(filter(str.isdigit, each.name))), default=None)


def _openevolve(folder: Path, program: str) -> Iterator[Past]:
    files = sorted((folder / "programs").glob("*.json"))
    read = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    for each in sorted(read, key=lambda each: (each.get("iteration_found") or 0, each.get("timestamp") or 0)):
        metrics = each.get("metrics") or {}
        about = each.get("metadata") or {}
        said = each.get("changes_description") or about.get("changes") or f"iteration {each.get('iteration_found')}"
        yield Past(
            id=str(each["id"]),
            files={program: str(each["code"]).encode()},
            value=_fitness(metrics),
            parent=str(each.get("parent_id") or ""),
            title=str(said),
            told={name: str(value) for name, value in metrics.items()},
            time=int(each.get("timestamp") or 0),
        )


def _fitness(metrics: Mapping[str, Any]) -> float | None:
    if "combined_score" in metrics:
        return _finite(metrics["combined_score"])
    numbers = [number for value in metrics.values() if (number := _finite(value)) is not None]
    return sum(numbers) / len(numbers) if numbers else None


# --- ShinkaEvolve -----------------------------------------------------------------------------------------------


def _database(path: Path) -> Path | None:
    """The file of a database, the largest one below a results folder."""
    if path.is_file():
        return path if path.read_bytes()[:15] == b"SQLite format 3" else None
    found = [each for ending in ("sqlite", "db") for each in path.glob(f"**/*.{ending}") if _database(each)]
    return max(found, key=lambda each: each.stat().st_size, default=None)


def _shinka(file: Path, program: str) -> Iterator[Past]:
    with tempfile.TemporaryDirectory() as scratch:  # a copy: what is opened is written to, and may be at work
        for part in file.parent.glob(f"{file.name}*"):
            shutil.copy(part, scratch)
        with closing(sqlite3.connect(Path(scratch) / file.name)) as database:
            database.row_factory = sqlite3.Row
            rows = database.execute("SELECT * FROM programs ORDER BY generation, timestamp").fetchall()
    for row in map(dict, rows):
        about = json.loads(row.get("metadata") or "{}")
        public = json.loads(row.get("public_metrics") or "{}")
        feedback = {"text_feedback": str(row["text_feedback"])} if row.get("text_feedback") else {}
        yield Past(
            id=str(row["id"]),
            files={program: str(row["code"]).encode()},
            value=_finite(row["combined_score"]) if row.get("correct", 1) else None,
            parent=str(row.get("parent_id") or ""),
            title=str(about.get("patch_name") or about.get("patch_description") or f"generation {row['generation']}"),
            told={**{name: str(value) for name, value in public.items()}, **feedback},
            time=int(row.get("timestamp") or 0),
        )


# --- autoresearch -----------------------------------------------------------------------------------------------


def _table(path: Path) -> Path | None:
    file = path / "results.tsv" if path.is_dir() else path
    return file if file.name == "results.tsv" and file.is_file() else None


def _autoresearch(file: Path, program: str) -> Iterator[Past]:
    """The rows whose commits Git still has; what was set back may be gone."""
    repository = Repository.discover(file.parent)
    known: dict[str, str] = {}
    with file.open(encoding="utf-8", newline="") as text:
        rows = list(csv.reader(text, delimiter="\t"))
    for row in rows[1:]:
        try:
            commit = repository.branches.commit(row[0].strip())
        except (NotFoundError, IndexError):
            continue
        values = dict(zip(rows[0], row, strict=False))
        crashed = values.get("status", "").strip() == "crash"
        files = {
            entry.path: repository.trees.blob(entry.blob)
            for entry in repository.trees.entries(repository.tree_of(commit))
            if entry.path == program
        }
        before = next((each for each in repository.branches.parents(commit) if each in known), "")
        known[commit] = commit
        yield Past(
            id=commit,
            files=files,
            value=None if crashed else _number(row[1]),
            parent=before,
            title=values.get("description", "").strip() or commit[:7],
            told=values,
            time=repository.commit_time(commit),
        )


def _number(text: str) -> float | None:
    try:
        return _finite(float(text))
    except ValueError:
        return None


_FORMATS: tuple[tuple[str, Callable[[Path], Path | None], Callable[[Path, str], Iterator[Past]]], ...] = (
    ("OpenEvolve", _checkpoint, _openevolve),
    ("autoresearch", _table, _autoresearch),
    ("ShinkaEvolve", _database, _shinka),
)
