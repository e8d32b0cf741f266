"""What an evaluator reaches above its task's folder, where several tasks share a module there and its data."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from evogit.adopt.foreign_task import IMPORTS, File, reached
from evogit.adopt.neighbours import QUOTED
from evogit.adopt.sources import MAX_SOURCE_BYTES, files_below, shared_folder
from evogit.contained import file_at, has_file

UP = re.compile(r"parent|\bdirname\(\s*(?:os\.path\.)?dirname\(|[\"']\.\.")
"""How a source leaves its folder, as far as words tell."""


def above(folder: Path, files: Mapping[str, File], evaluator: str) -> dict[str, File]:
    """Path in the folder above -> file: modules that the evaluator imports from there, and folders that these name.

    Of a folder with a part for each task, only what the evaluator names comes along.
    """
    own = [files[path][0].decode(errors="replace") for path in reached(files, {evaluator})]
    if (root := shared_folder(folder)) is None:
        return {}
    modules = dict(_modules(root, files, own)) if any(map(UP.search, own)) else {}
    texts = [data.decode(errors="replace") for data, _ in modules.values()]
    named = {name for text in texts for name in QUOTED.findall(text)}
    meant = {name for text in own for name in QUOTED.findall(text)}
    for place in sorted(root.iterdir()) if modules else ():
        is_task = place.name == folder.resolve().name
        if place.name in named and place.is_dir() and not is_task and not place.name.startswith("."):
            modules |= {f"{place.name}/{path}": file for path, file in _data(root, place.name, meant)}
    return modules


def _modules(root: Path, files: Mapping[str, File], texts: Sequence[str]) -> Iterator[tuple[str, File]]:
    """The modules of a folder that these sources import, and those that these import."""
    known, left = set(files), list(texts)
    while left:
        names = {name.partition(".")[0] for name in IMPORTS.findall(left.pop())} - sys.stdlib_module_names
        for path in sorted(f"{name}.py" for name in names if name):
            if path not in known and has_file(root, path):
                known.add(path)
                file = file_at(root, path, MAX_SOURCE_BYTES)
                left.append(file[0].decode(errors="replace"))
                yield path, file


def _data(root: Path, name: str, meant: set[str]) -> Iterator[tuple[str, File]]:
    """The files of a folder, of several folders in it those that are meant, where any is."""
    inner = [each.name for each in sorted((root / name).iterdir()) if each.is_dir() and each.name in meant]
    for each in inner:
        yield from ((f"{each}/{path}", file) for path, file in files_below(root, f"{name}/{each}").items())
    if not inner:
        yield from files_below(root, name).items()
