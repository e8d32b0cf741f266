"""Writes a candidate's files into a folder of a person's own choice, and nowhere else."""

from __future__ import annotations

import os
from collections.abc import Collection
from itertools import islice, takewhile
from pathlib import Path

from msgspec import Struct

from evogit.core import Candidate, RefusedError
from evogit.repository import EXECUTABLE, LINK, Repository, TreeEntry, UnfitChangeError, check_path
from evogit.repository.paths import parts_of


class Exported(Struct, frozen=True):
    """How many files were written, and the paths that were left out, each with the reason."""

    files: int
    skipped: tuple[tuple[str, str], ...]


def export(repository: Repository, candidate: Candidate, folder: Path) -> Exported:
    """Write the candidate's files into `folder`, which must be empty or absent.

    Files come first and symbolic links last, so that nothing is ever written through a link; a link that leads out of
    the folder is left out. Raises RefusedError: the folder holds something already, or cannot be made.
    """
    check_empty(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RefusedError(f"cannot make {folder}: {error.strerror}; choose another folder") from error
    entries = repository.trees.entries(repository.tree_of(candidate.commit))
    files, skipped = {entry.path for entry in entries}, list[tuple[str, str]]()
    for entry in sorted(entries, key=lambda entry: entry.mode == LINK):
        reason = _reason(repository, entry, files)
        try:
            if not reason:
                _write(folder / entry.path, entry, repository.trees.blob(entry.blob))
        except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
            reason = f"what no folder here can hold: {error.strerror}"
        if reason:
            skipped.append((entry.path, reason))
    return Exported(len(entries) - len(skipped), tuple(sorted(skipped)))


def check_empty(folder: Path) -> None:
    """Raises RefusedError unless a folder is absent or empty."""
    if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
        raise RefusedError(f"expected {folder} to be absent or an empty folder; choose another one")


def _reason(repository: Repository, entry: TreeEntry, files: Collection[str]) -> str:
    try:
        check_path(entry.path)
    except UnfitChangeError:
        return "an unsafe path"
    if any(above in files for above in islice(parts_of(entry.path), 1, None)):
        return "below something that is not a folder"
    if entry.is_file:
        return ""
    if entry.mode != LINK:
        return "a submodule"
    target = os.fsdecode(repository.trees.blob(entry.blob))
    parts = target.split("/")
    ups = len(list(takewhile("..".__eq__, parts)))
    inside = parts[0] != "" and "\0" not in target and ups <= entry.path.count("/") and ".." not in parts[ups:]
    return "" if inside else f"a link out of the folder, to {target!r}"  # whatever the other links are


def _write(path: Path, entry: TreeEntry, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if entry.mode == LINK:
        path.symlink_to(os.fsdecode(content))
        return
    with path.open("xb") as file:
        file.write(content)
    if entry.mode == EXECUTABLE:
        path.chmod(path.stat().st_mode | 0o111)
