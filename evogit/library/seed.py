"""What a run by a function starts from: a file, a folder, a text, or files by their paths."""

from __future__ import annotations

import ast
import re
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from evogit.config.values import is_safe_path
from evogit.contained import file_at
from evogit.core import UsageError
from evogit.repository import FILE

SeedLike = str | Path | Mapping[str, str | bytes]
"""The path of a file or a folder, a text of more than one line, or files: path -> content."""

LEFT_OUT = ("__pycache__", "node_modules")
"""Folders that are no part of a seed, as are hidden ones and other repositories."""


class Seed(Struct, frozen=True):
    """Where a run starts."""

    name: str  # what the run is called after it
    files: Mapping[str, tuple[bytes, int]]  # path -> content and Git mode
    single: str  # the path of its only file, where a file or a text was given; empty for folders
    folder: Path  # where it lies

    @classmethod
    def of(cls, given: SeedLike) -> Seed:
        """Read it. Raises UsageError if it is none."""
        if isinstance(given, Mapping):
            files = {path: (content, FILE) for path, content in contents(given).items()}
            return cls("program", _checked(files, "the seed"), "", Path.cwd())
        if isinstance(given, str) and "\n" in given:
            single = "program.py" if _is_python(given) else "text.txt"
            return cls(Path(single).stem, {single: (_encoded(given, "a seed"), FILE)}, single, Path.cwd())
        path = Path(given)
        if path.is_file():
            file = file_at(path.resolve().parent, path.resolve().name)  # the caller's own, so a link may lead anywhere
            return cls(_name(path.stem), {path.name: file}, path.name, path.parent.resolve())
        if path.is_dir() and given != "":
            names = (each.relative_to(path).as_posix() for each in _files(path))
            files = {name: file_at(path, name) for name in names}
            return cls(_name(path.resolve().name), _checked(files, str(path)), "", path.resolve())
        raise UsageError(
            f"expected a seed: a file, a folder, a text of more than one line, or a dict of files; got {str(given)!r}, "
            f"and there is no such file in {Path.cwd()}"
        )


def contents(given: Mapping[str, object]) -> dict[str, bytes]:
    """A dict of files as bytes. Raises UsageError if a path is none, or a content."""
    for path in given:
        if not isinstance(path, str) or not is_safe_path(path):
            raise UsageError(f"expected relative paths with forward slashes in a dict of files, got {path!r}")
    return {path: _encoded(content, path) for path, content in given.items()}


def _encoded(content: object, what: str) -> bytes:
    if not isinstance(content, str | bytes):
        raise UsageError(f"expected str or bytes as the content of {what}, got {content!r:.100}")
    try:
        return content.encode() if isinstance(content, str) else content
    except UnicodeEncodeError as error:
        raise UsageError(f"expected a text that UTF-8 can hold as the content of {what}: {error}") from None


def _checked(files: Mapping[str, tuple[bytes, int]], what: str) -> Mapping[str, tuple[bytes, int]]:
    if not files:
        raise UsageError(f"expected a file in {what}, found none")
    return files


def _is_python(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _name(stem: str) -> str:
    plain = unicodedata.normalize("NFKD", stem).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-zA-Z0-9]+", "_", plain).strip("_").lower()[:60] or "program"


def _files(folder: Path) -> Iterator[Path]:
    """All files that are a seed's, in order; links are not followed."""
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name in LEFT_OUT or path.is_symlink():
            continue
        if path.is_dir() and not (path / ".git").exists():
            yield from _files(path)
        elif path.is_file():
            yield path
