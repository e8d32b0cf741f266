"""What kind of project a tree holds: how it is tested and measured, what agents should change. It runs nothing."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any

from evogit.core import Direction

LOOKED_AT = 20
"""Most files of one sort that are read."""

SOURCE = re.compile(r"\.(py|[ch]|cc|cpp|cxx|hpp|hh|[cm]?[jt]s|[jt]sx|rs|go|java|kt|rb|pl|lua|zig)$")
ASIDE = re.compile(
    r"(^|/)(tests?|testing|specs?|__tests__|bench(marks?)?|benches|perf|docs?|examples?|scripts|tools|vendor|"
    r"third_party|node_modules|build|dist|\.[^/]+)/|"
    r"(^|/)(test_[^/]*|[^/]*[._-](test|spec|bench)\.\w+|bench[^/]*|perf[^/]*|conftest\.py|setup\.py|noxfile\.py|"
    r"[^/]*\.config\.\w+|build\.rs)$"
)
"""Sources that test, build or explain the others; candidates do not change them."""
BENCHMARK = re.compile(r"(^|/)(bench(marks?)?|benches|perf)/[^/]+$|(^|/)(bench|perf)[^/]*$|[._-]bench\.\w+$")
PYTHON_TEST = re.compile(r"(^|/)(test_[^/]*|[^/]*_test)\.py$")
REQUIREMENT = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)\s*(\[[^]/@]*\])?[^/@#]*")


@dataclass(frozen=True, kw_only=True)
class Project:
    """How a project can be evaluated, as far as its files tell; what they do not tell is empty.

    `tests` and `benchmark` are shell commands, `reads` says how the benchmark's number is read (metric -> how). What
    they need are Python packages, Debian packages where the sandbox has no others, and perhaps a `prepare` command.
    """

    kind: str = "a project of an unknown kind"
    tests: str = ""
    benchmark: str = ""
    reads: Mapping[str, str] = field(default_factory=dict)
    editable: tuple[str, ...] = ()
    prepare: str = ""
    python: tuple[str, ...] = ()
    debian: tuple[str, ...] = ()


@dataclass(frozen=True)
class ProjectFiles:
    """The files of a project: their paths, relative to its folder, and how one is read."""

    paths: Sequence[str]
    read: Callable[[str], str]

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


def detect(source: ProjectFiles) -> Project:
    """Tell what project this is, from the files that its tools would look for; those with odd names do not count."""
    source = ProjectFiles([path for path in source.paths if path.isprintable()], source.read)
    kinds = (_python_package, _javascript, _rust, _go, _make, _python_files)
    return next(filter(None, (kind(source) for kind in kinds)), Project(editable=editable(source.paths)))


# --- what agents change -------------------------------------------------------------------------------------------


def editable(paths: Iterable[str]) -> tuple[str, ...]:
    """The fewest globs that cover the sources of a project and nothing that tests them."""
    return tuple(_cover("", list(paths)))


def _cover(folder: str, paths: list[str]) -> Iterator[str]:
    wanted = [path for path in paths if _is_source(path)]
    if folder and wanted and not any(ASIDE.search(path) for path in paths):
        yield f"{folder}**"
        return
    yield from sorted(path for path in wanted if "/" not in path[len(folder) :])
    for below in sorted({path[len(folder) :].split("/")[0] for path in wanted if "/" in path[len(folder) :]}):
        inner = f"{folder}{below}/"
        yield from _cover(inner, [path for path in paths if path.startswith(inner)])


def _is_source(path: str) -> bool:
    return bool(SOURCE.search(path)) and not ASIDE.search(path)


# --- Python -------------------------------------------------------------------------------------------------------


def _python_package(source: ProjectFiles) -> Project | None:
    return _python(source) if source.first("pyproject.toml", "setup.py", "setup.cfg") else None


def _python_files(source: ProjectFiles) -> Project | None:
    return _python(source) if source.matching(PYTHON_TEST) else None


def _python(source: ProjectFiles) -> Project:
    runner = _python_runner(source)
    benchmark = _python_benchmark(source)
    top = "src" if any(path.startswith("src/") for path in source.paths) else ""
    apart = top or ("." if "/" in benchmark else "")
    needs = _requirements(source)
    if runner == "pytest" and not any(re.match(r"pytest\b(?!-)", need) for need in needs):
        needs = (*needs, "pytest")
    flags = {"pytest": "-m pytest -q", "unittest": f"-m unittest discover{_start(source)}"}
    return Project(
        kind=f"a Python project{f' with {runner}' if runner else ''}",
        tests=_with_path(top, f"python3 {flags[runner]}") if runner else "",
        benchmark=_with_path(apart, f"python3 {shlex.quote(benchmark)}") if benchmark else "",
        reads=read_of([source.text(benchmark)]),
        editable=editable(path for path in source.paths if path.endswith(".py") or ASIDE.search(path)),
        python=needs,
    )


def _python_runner(source: ProjectFiles) -> str:
    tests = source.matching(PYTHON_TEST)
    settings = "".join(source.text(name) for name in ("pyproject.toml", "setup.cfg", "tox.ini", "pytest.ini"))
    if not tests:
        return ""
    texts = [source.text(path) for path in tests]
    asked = "pytest" in settings or any(path.endswith("conftest.py") for path in source.paths)
    return "pytest" if asked or any("import pytest" in text or "unittest" not in text for text in texts) else "unittest"


def _python_benchmark(source: ProjectFiles) -> str:
    """The script that is called so, else the only one in a folder that is."""
    found = [path for path in source.matching(BENCHMARK) if re.fullmatch(r"(?!(.*/)?tests?/).*(?<!__init__)\.py", path)]
    named = [path for path in found if re.match(r"bench|perf", PurePosixPath(path).name)]
    return named[0] if named else found[0] if len(found) == 1 else ""


def _start(source: ProjectFiles) -> str:
    """Where unittest is to look, when the tests have a folder of their own."""
    folders = {path.split("/")[0] for path in source.matching(PYTHON_TEST) if "/" in path}
    return f" -s {shlex.quote(folders.pop())}" if len(folders) == 1 else ""


def _with_path(folder: str, command: str) -> str:
    return f'PYTHONPATH="{folder}:$PYTHONPATH" {command}' if folder else command


def _requirements(source: ProjectFiles) -> tuple[str, ...]:
    """The packages that the project and its tests say they need."""
    try:
        table = tomllib.loads(source.text("pyproject.toml"))
    except tomllib.TOMLDecodeError:
        table = {}
    project, poetry = _table(table, "project"), _table(_table(table, "tool"), "poetry")
    groups = {**_table(project, "optional-dependencies"), **_table(table, "dependency-groups")}
    said = [*_list(project, "dependencies"), *_list(groups, "test"), *_list(groups, "tests")]
    said += [line for name in groups for line in _list(groups, name) if re.match("pytest|hypothesis", line)]
    said += [name for name in _table(poetry, "dependencies") if name != "python"]
    said += [line.split("#")[0].strip() for line in source.text("requirements.txt").splitlines()]
    named = dict[str, str]()
    for line in said:
        found = REQUIREMENT.fullmatch(line)
        if found and line.isprintable() and found[1] != project.get("name"):
            named.setdefault(found[1].lower(), line)
    return tuple(named.values())


# --- other languages ----------------------------------------------------------------------------------------------


def _javascript(source: ProjectFiles) -> Project | None:
    if not source.first("package.json"):
        return None
    package = _json(source.text("package.json"))
    scripts = {
        name: text for name, text in _table(package, "scripts").items() if isinstance(text, str) and text.isprintable()
    }
    tests = _script(scripts, ("test",))
    if not tests and any(re.search(r"\.(test|spec)\.[cm]?js$", path) for path in source.paths):
        tests = "node --test"
    benchmark = _script(scripts, ("bench", "benchmark", "perf"))
    installs = "npm" in tests or bool(_table(package, "dependencies"))
    return Project(
        kind="a JavaScript package" + (" with node's test runner" if tests.startswith("node --test") else ""),
        tests=tests,
        benchmark=benchmark,
        reads=read_of(map(source.text, source.matching(BENCHMARK))) if benchmark else {},
        editable=editable(source.paths),
        prepare=("npm ci" if source.first("package-lock.json") else "npm install") if installs else "",
        debian=("nodejs", "npm") if installs or "npm" in benchmark else ("nodejs",),
    )


def _script(scripts: Mapping[str, str], names: Iterable[str]) -> str:
    """The command of the first such script; npm, which is slow and has much to install, only where it is needed."""
    name = next((name for name in names if name in scripts and "no test specified" not in scripts[name]), "")
    if not name or scripts[name].startswith("node "):
        return scripts.get(name, "")
    return f"npm run --silent {name}"


def _rust(source: ProjectFiles) -> Project | None:
    if not source.first("Cargo.toml"):
        return None
    return Project(
        kind="a Rust crate",
        tests="cargo test --offline",
        editable=editable(source.paths),
        prepare="cargo fetch && cargo test --no-run",
        debian=("cargo",),
    )


def _go(source: ProjectFiles) -> Project | None:
    if not source.first("go.mod"):
        return None
    return Project(
        kind="a Go module",
        tests="go test ./...",
        editable=editable(source.paths),
        prepare="go mod download",
        debian=("golang-go",),
    )


def _make(source: ProjectFiles) -> Project | None:
    text = source.text(source.first("GNUmakefile", "makefile", "Makefile"))
    targets = set(re.findall(r"^([\w.-]+)(?: [\w. -]*)?:(?!=)", text, re.MULTILINE))
    tests = next((name for name in ("test", "check", "tests") if name in targets), "")
    benchmark = next((name for name in ("bench", "benchmark", "perf") if name in targets), "")
    if not tests and not benchmark:
        return None
    plus = any(PurePosixPath(path).suffix in (".cc", ".cpp", ".cxx") for path in source.paths)
    compiled = plus or any(path.endswith(".c") for path in source.paths)
    return Project(
        kind=f"a {'C++' if plus else 'C'} project with make" if compiled else "a project with make",
        tests=f"make {tests}" if tests else "",
        benchmark=f"make {benchmark}" if benchmark else "",
        reads=read_of(map(source.text, source.matching(BENCHMARK))) if benchmark else {},
        editable=editable(source.paths),
        debian=("make", *(("g++",) if plus else ("gcc",)), "libc6-dev") if compiled else ("make",),
    )


# --- what a benchmark prints --------------------------------------------------------------------------------------

OBJECT = re.compile(r"(?:dumps?|stringify)\(\s*\{(.{1,400})|[\"'`]\{+(\\?\".{1,400})", re.DOTALL)
KEY = re.compile(r"(?:^|[{,])\s*\\?[\"']?([A-Za-z_]\w*)\\?[\"']?\s*(?=[:,}])")
PRINTED = re.compile(
    r"([A-Za-z]+)([ :=]{1,3})(?:%[-+ #0-9.]*l?[a-z]|\$?\{[^{}\n]*\})( ?)(ms|us|ns|s|seconds|ops/s)(?![\w/])"
)
UNITS = {"ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds", "s": "seconds", "ops/s": "ops_per_second"}

WORSE = re.compile(r"errors?|loss|miss(es)?|fail(ed|ures?)|excess|costs?")
BETTER = re.compile(r"ops|throughput|rate|score|accuracy|speed(up)?|pass(ed)?|coverage|[fqr]ps|per|hits|f1|recall")
LOWER = re.compile(
    r"seconds?|secs?|[mun]?s|(milli|micro|nano)seconds?|time|elapsed|duration|latency|took|cpu|wall|bytes|size|memory|"
    r"rss|[kmg]b"
)


def read_of(texts: Iterable[str]) -> dict[str, str]:
    """How the number that a benchmark's source prints can be read: metric -> how; empty when it does not tell."""
    for text in texts:
        for match in OBJECT.finditer(text):
            for key in KEY.findall(match[1] or match[2]):
                if direction_of(key, "json"):
                    return {key: "json"}
        if found := PRINTED.search(text):
            word, between, space, unit = found.groups()
            return {UNITS.get(unit, unit): f"regex:{word}{between}([0-9.]+){space}{unit}"}
    return {}


def direction_of(metric: str, how: str) -> Direction | None:
    """Which way is better, as far as the metric's name and the way that it is read tell."""
    if how == "exit" or how.startswith("junit:"):
        return "maximize"
    if how in ("cpu", "wall"):
        return "minimize"
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", metric).lower().split("_")
    for pattern, direction in ((WORSE, "minimize"), (BETTER, "maximize"), (LOWER, "minimize")):
        if any(pattern.fullmatch(word) for word in words):
            return "minimize" if direction == "minimize" else "maximize"
    return None


# --- tables that somebody wrote -----------------------------------------------------------------------------------


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return {}


def _table(package: Any, key: str) -> dict[str, Any]:
    found = package.get(key) if isinstance(package, dict) else None
    return found if isinstance(found, dict) else {}


def _list(table: Mapping[str, Any], key: str) -> list[str]:
    found = table.get(key)
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []
