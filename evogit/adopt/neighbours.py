"""The files that a program needs beside itself: those whose names stand in the sources that it reaches."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from itertools import islice
from pathlib import Path

from evogit.adopt.foreign_task import File
from evogit.adopt.sources import LEFT_OUT
from evogit.contained import file_at, has_file, lines_of
from evogit.core import ConfigError

LARGEST = 16 << 20
"""Bytes of files that come along with a script."""
MOST = 500
"""Files that come along with a script."""
SOURCES = re.compile(
    r".*\.(awk|bash|[ch]|cc|cfg|cjs|cpp|cxx|go|hh|hpp|hs|java|jl|js|json|kt|lua|mjs|ml|mk|mts|nim|php|p[lm]|pyx?|rb?|rs|"
    r"scala|sh|swift|toml|ts|ya?ml|zig)|[^.]*",
    re.IGNORECASE,
)
"""Names of files that may name others."""
ENDINGS: dict[str, tuple[str, ...]] = {
    "py": (".py", "/__init__.py"),
    "js": (".js", ".mjs", ".cjs", ".json", "/index.js"),
    "ts": (".ts", ".js", "/index.ts"),
    "rs": (".rs", "/mod.rs"),
    "rb": (".rb",),
    "lua": (".lua",),
    "pl": (".pm",),
}
"""Ending of a source -> what is put behind the name of a module to get its file."""
ENDINGS |= {"mjs": ENDINGS["js"], "cjs": ENDINGS["js"], "mts": ENDINGS["ts"], "pm": ENDINGS["pl"]}
IMPORT = re.compile(
    r"^[ \t]*(?:pub[ \t]{1,8})?(?:from|import|use|mod)[ \t]{1,8}([\w.:]{1,200})"
    r"(?:[ \t]{1,8}import[ \t]{1,8}\(?([\w, ]{1,1000}))?|"
    r"\b(?:require(?:_relative)?|import|from)\b[ \t]{0,8}\(?[ \t]{0,8}[\"']([^\"'\n]{1,200})[\"']",
    re.MULTILINE,
)
SEVERAL = re.compile(
    r"^[ \t]*import[ \t]{1,8}([\w.]{1,200}(?:[ \t]{1,8}as[ \t]{1,8}\w{1,80})?,[\w., \t]*)", re.MULTILINE
)
"""Modules that a line of Python imports."""
MODULE = re.compile(r"\bpython[\d.]{0,8}[ \t]{1,8}(?:-[A-Za-z]{1,8}[ \t]{1,8}){0,8}-m[ \t]{1,8}([A-Za-z_][\w.]{0,200})")
"""A module that a command starts."""
QUOTED = re.compile(r"[\"'`]([^\"'`\n]{1,200})[\"'`]")
VARIABLE = re.compile(r"\$(?:\{\w{1,80}\}|\w{1,80})/")
"""A folder in front of a path that only a run knows, mostly the script's own."""
MAX_DEPTH = 20
"""Modules within each other."""
MAX_NAMES = 5000
"""Names in a source that may mean files."""
WHOLE = re.compile(r"\b(listdir|scandir|iterdir|glob|rglob|walk|readdir\w*|read_dir|list\.files|Dir)\b")
"""What reads all files of a folder."""
SAFE = re.compile(r"\.(png|jpe?g|gif|pdf|sqlite|db)$")
"""Endings that are left out of what lies beside an evaluator, but not where a source names the file."""


def followed(
    begin: Iterable[str],
    get: Callable[[str], File | None],
    inside: Callable[[str], Iterable[str]],
    *,
    wild: bool = True,
) -> dict[str, File]:
    """Path -> file of what is reached from these paths, those first; `inside` gives the paths of a folder's files.

    Patterns and whole folders reach files only where sources may be `wild`.
    """
    found: dict[str, File] = {}
    left = list(begin)
    while left:
        path = left.pop(0)
        if path not in found and (file := get(path)):
            found[path] = file
            if is_source(path):
                left += named(path, file[0].decode(errors="replace"), inside, wild=wild)
    return found


def among(files: Mapping[str, File], begin: Iterable[str]) -> dict[str, File]:
    """Those of the files that are reached from these paths."""

    def inside(folder: str) -> Iterator[str]:
        return (path for path in files if path.rpartition("/")[0] == folder)

    return followed(begin, files.get, inside)


def beside(script: Path) -> tuple[dict[str, File], tuple[str, ...]]:
    """Return the files that a script reaches in its folder, itself first, and the paths that are too large to be taken.

    In the home of the user, or above it, that is only what has its name in a source.
    """
    root = script.parent.resolve()
    room = [LARGEST, MOST]
    large: list[str] = []

    def get(path: str) -> File | None:
        nonlocal large
        if path == script.name:
            return file_at(root, path, LARGEST)
        if _is_hidden(path) or not has_file(root, path):
            return None
        try:
            file = file_at(root, path, room[0] if room[1] else 0)
        except ConfigError:
            large += [path] if path not in large else []
            return None
        room[:] = room[0] - len(file[0]), room[1] - 1
        return file

    def inside(folder: str) -> Iterator[str]:
        try:
            place = (root / folder).resolve()
            names = sorted(each.name for each in place.iterdir()) if place.is_relative_to(root) else []
        except (OSError, ValueError):
            return iter(())
        return (f"{folder}/{name}" if folder else name for name in names)

    is_home = Path.home().resolve().is_relative_to(root)
    return followed([script.name], get, inside, wild=not is_home), tuple(large)


def is_source(path: str) -> bool:
    """Whether a file may name others, as far as its name tells; one without an ending may."""
    return SOURCES.fullmatch(path.rpartition("/")[2]) is not None


def named(path: str, text: str, inside: Callable[[str], Iterable[str]], *, wild: bool) -> Iterator[str]:
    """The paths that a source's text may mean, whether there is something or not; patterns only if it is `wild`."""
    here, text = path.rpartition("/")[0], "\n".join(lines_of(text))
    words = {word.lstrip("/") for word in words_of(text)}
    quoted = set(islice(dict.fromkeys(QUOTED.findall(text)), MAX_NAMES))
    words, whole = words | quoted, wild and WHOLE.search(text) is not None
    inside = cache(lambda folder, look=inside: list(look(folder)))
    for folder in dict.fromkeys(("", here)):
        prefix = f"{folder}/" if folder else ""
        yield from sorted(each for each in inside(folder) if each.removeprefix(prefix) in words)
        far = sorted(each.removeprefix("./") for each in words if "/" in each)
        yield from (clean for each in far if (clean := _joined(folder, each)))
        for name in sorted(each.strip("/").removeprefix("./") for each in quoted):
            place, _, pattern = _joined(folder, name).rpartition("/")
            if wild and "*" in pattern and re.search(r"\w", pattern):
                yield from fnmatch.filter(
                    inside(place), f"{place}/" * bool(place) + re.sub(r"([\[?])", r"[\1]", pattern)
                )
            elif pattern and "*" not in place + pattern:
                files = inside(f"{place}/{pattern}".lstrip("/"))
                yield from (each for each in files if whole or each.rpartition("/")[2] in words)
    yield from _modules(path, text)


def words_of(text: str) -> list[str]:
    """The words of a text that may be paths, without the folders that only a run knows."""
    words = (word.rstrip(".@+/-") for word in re.findall(r"[\w.@+/-]+", VARIABLE.sub(" ", text)))
    return list(islice(dict.fromkeys(filter(None, words)), MAX_NAMES))


def _modules(path: str, text: str) -> Iterator[str]:
    """The files of the modules that a source imports."""
    here, endings = path.rpartition("/")[0], ENDINGS.get(path.rpartition(".")[2], ())
    yield from modules_started(text)
    for match in SEVERAL.finditer(text):
        names = (each.split()[0] for each in match[1].split(",") if each.strip())
        yield from (_joined(here, f"{name.replace('.', '/')}.py") for name in names)
    for match in IMPORT.finditer(text):
        name = match[3] or re.sub(r"^\.+", "", match[1]).replace("::", "/").replace(".", "/")
        parts = [f"{name}/{each.split()[0]}".lstrip("/") for each in (match[2] or "").split(",") if each.split()]
        parents = ["/".join(name.split("/")[:depth]) for depth in range(1, min(name.count("/"), MAX_DEPTH) + 1)]
        for module in (*parents, name, *parts):
            for folder in dict.fromkeys((here, "")):
                yield from (clean for ending in ("", *endings) if (clean := _joined(folder, module + ending)))


def modules_started(text: str) -> Iterator[str]:
    """The files that modules may be which commands start: `python -m bench.run`."""
    for name in (found.rstrip(".") for found in MODULE.findall(text)):
        yield from (f"{name.replace('.', '/')}{end}" for end in (*ENDINGS["py"], "/__main__.py"))


def _joined(folder: str, name: str) -> str:
    """A path below the root, empty where it leads out of it."""
    parts: list[str] = folder.split("/") if folder else []
    for part in name.split("/"):
        if part == ".." and not parts or name.startswith("/"):
            return ""
        if part == "..":
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def _is_hidden(path: str) -> bool:
    return LEFT_OUT.search(path) is not None and not (SAFE.search(path) and not LEFT_OUT.search(SAFE.sub("", path)))
