"""A project's files, what can be told of it, and which of its files agents change."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from msgspec import Struct, field

LOOKED_AT = 20  # most files of one sort that are read

SOURCE = re.compile(r"\.(py|[ch]|cc|cpp|cxx|hpp|hh|[cm]?[jt]s|[jt]sx|rs|go|java|kt|rb|pl|lua|zig)$")
ASIDE = re.compile(
    r"(^|/)(_?(tests?|testing|test_?utils?|test_?data|fixtures?|specs?|bench(marks?)?|benches|perf|fuzz(ing)?|docs?|"
    r"examples?|samples?|scripts|tools|vendor|third[-_]?party)|__tests__|node_modules|build|dist|\.[^/]+)/|"
    r"^contrib/|(^|/)(test_[^/]*|[^/]*[._-](test|spec|bench)\.\w+|[^/]*(?<!la|at)(?<!con|fas|pro)tests?\.c\w*|bench[^/]*|perf[^/]*|conftest\.py|setup\.py|noxfile\.py|"
    r"[^/]*\.config\.\w+|build\.rs)$"
)
"""Sources that test, build or explain the others; candidates do not change them."""
BENCHMARK = re.compile(r"(^|/)(bench(marks?)?|benches|perf)/[^/]+$|(^|/)(bench|perf)[^/]*$|[._-]bench\.\w+$")


class Project(Struct, frozen=True, kw_only=True):
    """How a project can be evaluated, as far as its files tell; what they do not tell is empty.

    All commands are for the shell. `prepare` installs what others wrote, once; `build` makes what `tests` run, where
    that is a step of its own, and can be repeated. `reads` says how the number that `benchmark` prints is read
    (metric -> how). `python` are the packages and `debian` those of the system that all this needs. `checks` are the
    formatters and type checkers that the project has set up, which take the packages `checkers` besides.
    """

    kind: str = "a project of an unknown kind"
    build: str = ""
    tests: str = ""
    benchmark: str = ""
    reads: Mapping[str, str] = field(default_factory=dict)
    editable: tuple[str, ...] = ()
    prepare: str = ""
    python: tuple[str, ...] = ()
    debian: tuple[str, ...] = ()
    checks: str = ""
    checkers: tuple[str, ...] = ()


class ProjectFiles(Struct, frozen=True, dict=True):
    """The files of a project: their paths, relative to its folder, how one is read, and the version of the last tag."""

    paths: Sequence[str]
    read: Callable[[str], str]
    version: str = "0"

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.paths)

    def text(self, path: str) -> str:
        """A file's text, empty when there is none."""
        return self.read(path) if path in self._known else ""

    def first(self, *names: str) -> str:
        """The first of these files that there is, else the empty string."""
        return next((name for name in names if name in self._known), "")

    def matching(self, pattern: re.Pattern[str]) -> list[str]:
        """Some files whose path fits, those nearest to the top first."""
        found = [path for path in self.paths if pattern.search(path)]
        return sorted(found, key=lambda path: (path.count("/"), path))[:LOOKED_AT]


# --- what agents change -------------------------------------------------------------------------------------------


def editable(paths: Iterable[str], sources: re.Pattern[str] = SOURCE) -> tuple[str, ...]:
    """Return the fewest globs that cover the sources of a project and nothing that tests them."""
    return tuple(_cover("", [path for path in paths if sources.search(path) or ASIDE.search(path)], sources))


def _cover(folder: str, paths: list[str], sources: re.Pattern[str]) -> Iterator[str]:
    wanted = [path for path in paths if sources.search(path) and not ASIDE.search(path)]
    if folder and wanted and not any(ASIDE.search(path) for path in paths):
        yield f"{folder}**"
        return
    yield from sorted(path for path in wanted if "/" not in path[len(folder) :])
    for below in sorted({path[len(folder) :].split("/")[0] for path in wanted if "/" in path[len(folder) :]}):
        inner = f"{folder}{below}/"
        yield from _cover(inner, [path for path in paths if path.startswith(inner)], sources)


# --- tables that somebody wrote --------------------------------------------------------------------------------------


def json_of(text: str) -> Any:
    """What the text is as JSON, an empty table where it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return {}


def table(package: Any, key: str) -> dict[str, Any]:
    """The table under a key, empty where there is none."""
    found = package.get(key) if isinstance(package, dict) else None
    return found if isinstance(found, dict) else {}


def texts(table: Mapping[str, Any], key: str) -> list[str]:
    """The texts of the list under a key."""
    found = table.get(key)
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []
