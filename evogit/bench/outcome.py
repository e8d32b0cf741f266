"""The record of a run in a bench: a small JSON file with what it depends on, sealed.

A folder that a repository brings along may hold anybody's results, so only those with this user's seal are read.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct, ValidationError, convert, field, to_builtins

from evogit.core import RefusedError, RepositoryError
from evogit.evaluation.inputs import of_person
from evogit.repository.state_folder import open_folder

SCHEMA = 1
"""Of the file of a run; a file of another one is made again."""

IRRELEVANT = ("bench", "cli", "review", "web")
"""Parts of EvoGit that no run depends on."""


class Call(Struct, frozen=True, kw_only=True):
    """What a run had reached by a call of a model: tokens of all calls so far, the believed best and its value.

    `holdout` is the value of the same on the holdout, None without one.
    """

    tokens: int
    best: str
    value: float
    holdout: float | None = None


class BenchRun(Struct, frozen=True, kw_only=True):
    """One run of one method.

    `curve` is the value of the believed best after each evaluation, the seed's first; `paid` begins before the first
    call that counts; `depends` are the digests and settings that make it comparable.
    """

    method: str
    seed: int
    curve: tuple[float, ...]
    paid: tuple[Call, ...] = ()
    reason: str = ""
    evaluated: int = 0
    failed: int = 0
    proposals: int = 0
    duplicates: int = 0
    failed_proposals: int = 0
    repeated: int = 0
    dollars: float = 0.0
    tokens: int = 0
    calls: int = 0
    seconds: float = 0.0
    depends: Mapping[str, Any] = field(default_factory=dict)


def _seal(content: str) -> str:
    return hmac.digest(_key(), content.encode(), "sha256").hex() if _key() else "-"


@cache
def _key() -> bytes:
    try:
        return of_person(os.environ, "bench")
    except RepositoryError:  # no place for one: then no run is taken for done
        return b""


def write(path: Path, outcome: BenchRun) -> None:
    """Write the file whole or not at all. Raises RefusedError: it cannot be written."""
    content = json.dumps({"schema": SCHEMA, **to_builtins(outcome)}, allow_nan=False)
    save(path, f"{_seal(content)} {content}\n")


def read(path: Path) -> BenchRun | None:
    """The run in this file; None where there is no file, none of this version, or none that this user sealed."""
    try:
        seal, _, content = path.read_text(encoding="utf-8").strip().partition(" ")
        if not (_key() and hmac.compare_digest(seal.encode(), _seal(content).encode())):
            return None
        record = json.loads(content)
        if not isinstance(record, dict) or record.pop("schema", None) != SCHEMA:
            return None
        return convert(record, BenchRun)
    except (FileNotFoundError, UnicodeDecodeError, json.JSONDecodeError, ValidationError):
        return None


def save(path: Path, content: str | bytes) -> None:
    """Put a file in place in one step, so that a killed process leaves no half of one.

    Raises:
        RefusedError: it cannot be written.
    """
    try:
        with open_folder(path.parent) as folder:
            folder.replace(path.name, [content.encode() if isinstance(content, str) else content])
    except OSError as error:
        raise RefusedError(f"cannot write {path}: {error.strerror}; choose another folder with -o DIR") from error


@cache
def source_digest() -> str:
    """Identifies the code that runs depend on, so that no run of yesterday's EvoGit is taken for one of today's."""
    root = Path(__file__).parent.parent
    files = [file for file in sorted(root.rglob("*.py")) if file.relative_to(root).parts[0] not in IRRELEVANT]
    listing = [[file.relative_to(root).as_posix(), file.read_bytes().hex()] for file in files]
    return hashlib.sha256(json.dumps(listing).encode()).hexdigest()[:16]
