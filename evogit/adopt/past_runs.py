"""Finds the run of another system at a path, and reads it."""

from __future__ import annotations

from pathlib import Path

from evogit.adopt.checkpoints import find_checkpoints, read_checkpoints
from evogit.adopt.past import PastRun
from evogit.adopt.results_table import find_table, read_table
from evogit.adopt.shinka_database import find_database, read_database
from evogit.core import NotFoundError

EXPECTED = (
    "a checkpoint of OpenEvolve or SkyDiscover (programs/*.json; the first is there after `checkpoint_interval` "
    "iterations), a ShinkaEvolve database (*.sqlite, *.db) or an autoresearch repository (results.tsv)"
)


def read_past(path: Path, program: str, metric: str) -> PastRun:
    """The run at a path; `program` is the file that was evolved, `metric` what its score is called.

    Raises:
        NotFoundError: there is none, naming what was looked for, or nothing of it can be read.
        UsageError: there are several.
    """
    if folders := find_checkpoints(path):
        return read_checkpoints(folders, program)
    if found := find_table(path):
        return read_table(found, program, metric)
    if found := find_database(path):
        return read_database(found, program)
    raise NotFoundError(f"{path} holds no run of another system; expected {EXPECTED}")
