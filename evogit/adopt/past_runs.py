"""Finds the run of another system at a path, and reads it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from evogit.adopt.checkpoints import find_checkpoints, read_checkpoints
from evogit.adopt.past import PastRun
from evogit.adopt.results_table import find_table, read_table
from evogit.adopt.session_log import find_log, read_log
from evogit.adopt.shinka_database import find_database, read_database
from evogit.core import NotFoundError, UsageError

EXPECTED = (
    "a checkpoint of OpenEvolve or SkyDiscover (programs/*.json; the first is there after `checkpoint_interval` "
    "iterations), a ShinkaEvolve database (*.sqlite, *.db) or an autoresearch repository "
    "(results.tsv, .auto/log.jsonl, autoresearch.jsonl)"
)


def read_past(path: Path, program: str, metric: str, is_program: Callable[[str], bool] | None = None) -> PastRun:
    """The run at a path; `program` is the file that was evolved, `metric` what its score is called.

    `is_program` tells which files were evolved where these are several, which a session of pi-autoresearch may have;
    `program` is empty then.

    Raises:
        NotFoundError: there is none, naming what was looked for, or nothing of it can be read.
        UsageError: there are several, or several files were evolved.
    """
    table = find_table(path)
    if table is None and (found := find_log(path)):
        return read_log(*found, is_program or program.__eq__, metric)
    if not program:
        raise UsageError(f"expected a task with one file that may change, as {path} is no session of pi-autoresearch")
    if folders := find_checkpoints(path):
        return read_checkpoints(folders, program)
    if table:
        return read_table(table, program, metric)
    if database := find_database(path):
        return read_database(database, program)
    raise NotFoundError(f"{path} holds no run of another system; expected {EXPECTED}")
