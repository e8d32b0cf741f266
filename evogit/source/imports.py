"""The imports of files in a few languages, and the files of a tree that they name: a guess, by names alone."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Iterable

MAX_IMPORTS = 200
"""Imports of a file that are followed."""
MAX_FILES = 400
"""Files whose imports are followed."""
MAX_ALIKE = 3
"""Files that one import may mean; of more, none."""

_PYTHON = re.compile(r"^\s*(?:from\s+(\.*)([\w.]*)\s+import\s+\(?([\w, \t]*)|import\s+([\w.]+))", re.MULTILINE)
_QUOTED = re.compile(
    r"""^\s*\#\s*include\s*[<"]([^">\n]+)|(?:\bfrom|\bimport|\brequire\s*\()[\s(]*["']([^"'\n]+)|^\s+(?:[\w.]+\s+)?"([\w./-]+)"\s*$""",
    re.MULTILINE,
)
_RUST = re.compile(r"^\s*(?:pub\s+)?(?:use|mod)\s+([\w:]+)", re.MULTILINE)


def imports(path: str, text: str) -> tuple[str, ...]:
    """Return what a file imports as paths without endings; those relative to the file are joined to its folder."""
    folder, words = posixpath.dirname(path), list[str]()
    if path.endswith((".py", ".pyi")):
        for dots, module, names, plain in _PYTHON.findall(text):
            base = "/".join([folder, *[".."] * (len(dots) - 1)]) if dots else ""
            above = posixpath.join(base, (module or plain).replace(".", "/"))
            words += [above, *(f"{above}/{name.strip()}" for name in names.split(",") if name.strip())]
    elif path.endswith(".rs"):
        words += [word.replace("::", "/").removeprefix("crate/") for word in _RUST.findall(text)]
    else:
        for word in filter(None, (name for found in _QUOTED.findall(text) for name in found)):
            words.append(posixpath.join(folder, word) if word.startswith(".") else word)
    return tuple(dict.fromkeys(posixpath.normpath(word) for word in words[:MAX_IMPORTS] if word))


def reached(starts: Iterable[str], paths: Collection[str], read: Callable[[str], Iterable[str]]) -> list[str]:
    """Return those of the paths that `starts`, paths or imports, lead to, nearest first; `read` gives imports."""
    index = dict[str, list[str]]()
    for path in sorted(paths, key=lambda path: (path.count("/"), path)):
        for name in _called(path):
            index.setdefault(name, []).append(path)
    found = dict[str, None]()
    new = list(starts)
    while new and len(found) < MAX_FILES:
        files = [path for word in dict.fromkeys(new) for path in _meant(word, index) if path not in found]
        found.update(dict.fromkeys(files))
        new = [word for path in dict.fromkeys(files) for word in read(path)]
    return list(found)


def _called(path: str) -> Iterable[str]:
    """The names by which a file is imported: its path without its ending or that of its folder, from any folder on."""
    stem, _, ending = path.rpartition(".")
    names = [stem or path]
    folder, _, last = stem.rpartition("/")
    if ending == "go" or last in ("__init__", "index", "mod", "lib"):
        names.append(folder or ".")
    for name in filter(None, names):
        parts = name.split("/")
        yield from ("/".join(parts[first:]) for first in range(len(parts)))


def _meant(word: str, index: dict[str, list[str]]) -> list[str]:
    """The files that an import means: of its whole path, else of its end, as others may have left out its beginning."""
    parts = re.sub(r"\.(?:py|[cm]?[jt]sx?|go|rs|h|hpp|hh|cc|cpp|c)$", "", word).split("/")
    for first in range(len(parts)):
        files = index.get("/".join(parts[first:]), [])
        if files:
            is_folder = all(path.endswith(".go") for path in files)
            return files if len(files) <= MAX_ALIKE or is_folder else files[:1] if not first else []
    return index.get(".", []) if "." in parts[0] else []  # a Go module's own name, such as github.com/a/b
