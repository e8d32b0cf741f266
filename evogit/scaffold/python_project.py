"""How Python projects are tested, and what they need."""

from __future__ import annotations

import ast
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from configparser import ConfigParser
from configparser import Error as ConfigParserError
from contextlib import suppress
from itertools import chain
from pathlib import PurePosixPath
from posixpath import normpath
from typing import Any

from evogit.config.printed_numbers import read_of
from evogit.contained import MAX_LINE_CHARS, toml_of
from evogit.scaffold.checkers import python_checks
from evogit.scaffold.project import ASIDE, BENCHMARK, LOOKED_AT, Project, ProjectFiles, editable, table, texts
from evogit.source.definitions import syntax

PYTHON = re.compile(r"\.py$")
PYTHON_TEST = re.compile(r"(^|/)(test_[^/]*|[^/]*_test)\.py$")
TESTING = re.compile(r"tests?$|testing$")  # groups of requirements that are for the tests
TESTED_BY = re.compile(r"pytest|hypothesis")  # requirements of other groups that tests need
REQUIREMENT_FILES = re.compile(r"(requirements/)?([\w-]*requirements[\w-]*|(?<=/)(tests?|dev|testing|base))\.(txt|in)$")
FOR_OTHERS = re.compile(r"docs?|lint|release|build|typing|min(imal|imum)?(?![a-z])|old|lock", re.IGNORECASE)
"""Names of files of requirements that neither the project nor its tests need."""
MAX_INCLUDES = 5  # files of requirements that include each other
LOCKS = ("uv.lock", "poetry.lock", "pdm.lock")
ITSELF = re.compile(r"\bimportlib[._]metadata\b|\bpkg_resources\b|\bext_modules\b")
"""Sources that only work in a project that was installed: it asks for its own version, or has code to compile."""
VERSIONED_BY_GIT = re.compile(r"(setuptools|flit)[-_]scm|hatch-vcs|versioningit|dunamai")
REQUIREMENT = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)\s*(\[[^]/@]*\])?[^/@#]*")


def python_package(source: ProjectFiles) -> Project | None:
    """What pip, uv or Poetry would install."""
    return _python(source) if source.first("pyproject.toml", "setup.py", "setup.cfg") else None


def python_files(source: ProjectFiles) -> Project | None:
    """Files alone, with tests among them."""
    return _python(source) if source.matching(PYTHON_TEST) else None


def _python(source: ProjectFiles) -> Project:
    runner = _python_runner(source)
    benchmark = _python_benchmark(source)
    top = "src" if any(path.startswith("src/") for path in source.paths) else ""
    apart = top or ("." if "/" in benchmark else "")
    needs = project_requirements(source)
    if runner == "pytest" and not any(re.match(r"pytest\b(?!-)", need) for need in needs):
        needs = (*needs, "pytest")
    prepare, build = _install(source)
    wanted = _editable(source)
    groups = _groups(source, _toml(source.text("pyproject.toml"))).values()
    checks, checkers = python_checks(source, wanted, list(chain.from_iterable(groups)))
    folders = {path.split("/")[0] for path in source.matching(PYTHON_TEST) if "/" in path}
    start = f" -s {shlex.quote(folders.pop())}" if len(folders) == 1 else ""
    flags = {"pytest": "-m pytest -q", "unittest": f"-m unittest discover{start}"}
    return Project(
        kind=f"a Python project{f' with {runner}' if runner else ''}",
        tests=f"{_path(top)}python3 {flags[runner]}" if runner else "",
        benchmark=f"{_path(apart)}python3 {shlex.quote(benchmark)}" if benchmark else "",
        reads=read_of([source.text(benchmark)]),
        editable=wanted,
        prepare=prepare,
        python=tuple(dict.fromkeys((*needs, *build))),
        checks=checks,
        checkers=tuple(each for each in checkers if _plain_name(each) not in map(_plain_name, needs)),
    )


def _install(source: ProjectFiles) -> tuple[str, tuple[str, ...]]:
    """The command that installs the project itself, where it needs that, and the packages that build it."""
    sources = [path for path in source.paths if path.endswith(".py") and (path == "setup.py" or not ASIDE.search(path))]
    nearest = sorted(sources, key=lambda path: (path.count("/"), path))[:LOOKED_AT]
    if not source.first("pyproject.toml", "setup.py") or not any(ITSELF.search(source.text(path)) for path in nearest):
        return "", ()
    build = texts(table(_toml(source.text("pyproject.toml")), "build-system"), "requires") or ["setuptools"]
    version = f"SETUPTOOLS_SCM_PRETEND_VERSION={source.version} " if any(map(VERSIONED_BY_GIT.match, build)) else ""
    command = "python3 -m pip install --user --break-system-packages --no-deps --no-build-isolation -e ."
    return version + command, ("pip", *build)


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


def _editable(source: ProjectFiles) -> tuple[str, ...]:
    """Return globs of the modules; scripts beside packages are not installed, unless the project names them."""
    wanted = editable(source.paths, PYTHON)
    settings = "".join(source.text(name) for name in ("pyproject.toml", "setup.cfg", "setup.py"))
    packages = [glob for glob in wanted if "/" in glob]
    modules = [path for path in wanted if "/" not in path and re.search(rf"\b{re.escape(path[:-3])}\b", settings)]
    return (*modules, *packages) if packages and settings else wanted


def _path(folder: str) -> str:
    return f'PYTHONPATH="{folder}:$PYTHONPATH" ' if folder else ""


def _serves_tests(group: str, requirement: str) -> bool:
    """Return whether a requirement of an optional group is one of the tests."""
    return TESTING.match(group) is not None or TESTED_BY.match(requirement) is not None


def project_requirements(source: ProjectFiles) -> tuple[str, ...]:
    """Return the packages that the project and its tests say they need, in the versions of a lock file."""
    pyproject = _toml(source.text("pyproject.toml"))
    name, locked = str(table(pyproject, "project").get("name", "")), _locked(source)
    named = dict[str, str]()
    for line in (line[:MAX_LINE_CHARS] for line in _needs(source, pyproject)):
        found = REQUIREMENT.fullmatch(line)
        if found and line.isprintable() and _plain(found[1]) != _plain(name):
            version = locked.get(_plain(found[1]))
            pinned = f"{found[1]}{found[2] or ''}=={version}" if version else line
            named.setdefault(_plain(found[1]), pinned)
    return tuple(named.values())


def _plain_name(requirement: str) -> str:
    return _plain(re.split(r"[^\w.-]", requirement, maxsplit=1)[0])


def _groups(source: ProjectFiles, pyproject: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the requirements of all extras and groups; those of the project itself are under ""."""
    project, (needs, extras) = table(pyproject, "project"), _setuptools(source)
    groups = {**extras, **table(project, "optional-dependencies"), **table(pyproject, "dependency-groups")}
    groups["dev-dependencies"] = table(table(pyproject, "tool"), "uv").get("dev-dependencies")
    lines = {name: list(_lines(group)) for name, group in groups.items()}
    return {**lines, "": [*texts(project, "dependencies"), *needs]}


def _setuptools(source: ProjectFiles) -> tuple[list[str], dict[str, Any]]:
    """Return the requirements and extras that setup.cfg names, and setup.py as far as they stand there as literals."""
    settings = ConfigParser(interpolation=None, strict=False)
    with suppress(ConfigParserError):
        settings.read_string(source.text("setup.cfg"))
    needs = settings.get("options", "install_requires", fallback="").splitlines()
    extras = dict[str, Any]()
    if settings.has_section("options.extras_require"):
        extras = {name: lines.splitlines() for name, lines in settings.items("options.extras_require")}
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        for node in ast.walk(syntax(source.text("setup.py"))):
            if isinstance(node, ast.keyword) and node.arg in ("install_requires", "tests_require", "extras_require"):
                with suppress(ValueError):
                    given = ast.literal_eval(node.value)
                    extras |= {str(name): lines for name, lines in given.items()} if isinstance(given, dict) else {}
                    needs += _lines(given)
    return needs, extras


def _needs(source: ProjectFiles, pyproject: Mapping[str, Any]) -> Iterator[str]:
    """Yield the requirements of the project and its tests, also by way of its own extras, groups and other files."""
    lines, name = _groups(source, pyproject), table(pyproject, "project").get("name", " ")
    own = re.compile(rf"(?:-e|--editable)?[\s=]*(?:{re.escape(str(name))}|\.)\[([\w, .-]+)\]")
    waiting = lines.pop("")
    waiting += [line for group in lines for line in lines[group] if _serves_tests(group, line) or own.match(line)]
    waiting += _poetry(table(table(pyproject, "tool"), "poetry"))
    files = [name for name in source.matching(REQUIREMENT_FILES) if not FOR_OTHERS.search(name)]
    waiting += [line for name in files for line in _requirement_lines(source, name)]
    seen = set[str]()
    for line in waiting:  # which grows meanwhile
        names = own.match(line)
        for name in map(str.strip, names[1].split(",") if names else ()):
            waiting += lines.get(name, ()) if name not in seen else ()
            seen.add(name)
        if not names:
            yield line


def _lines(group: Any) -> Iterator[str]:
    """Yield the requirements of a group; another group that it includes is written like an extra."""
    for line in group if isinstance(group, list | tuple) else ():
        if isinstance(line, str):
            yield line
        elif isinstance(line, dict) and isinstance(line.get("include-group"), str):
            yield f".[{line['include-group']}]"


def _requirement_lines(source: ProjectFiles, file: str, above: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the lines of a file of requirements, with those of the files that it includes."""
    for line in source.text(file).splitlines():
        line = re.split(r"#|\\$|\s--", line, maxsplit=1)[0].strip()  # without hashes
        included = re.match(r"(?:-r|--requirement)[\s=]*(\S+)", line)
        path = normpath(PurePosixPath(file).parent / included[1]) if included else ""
        if not included:
            yield line
        elif path not in (file, *above) and len(above) < MAX_INCLUDES:
            yield from _requirement_lines(source, path, (*above, file))


def _poetry(poetry: Mapping[str, Any]) -> Iterator[str]:
    """What Poetry's own tables name, without their kind of versions, which pip does not know."""
    groups = [("", table(poetry, "dependencies")), ("dev", table(poetry, "dev-dependencies"))]
    groups += [(name, table(group, "dependencies")) for name, group in table(poetry, "group").items()]
    for group, needs in groups:
        for name, about in needs.items():
            known = about if isinstance(about, dict) else {}
            is_meant = name != "python" and not {"optional", "path", "git"} & known.keys()
            if is_meant and (not group or _serves_tests(group, name)):
                yield name + (f"[{','.join(texts(known, 'extras'))}]" if known.get("extras") else "")


def _locked(source: ProjectFiles) -> dict[str, str]:
    """Package -> its version in a lock file, where that names one alone."""
    found = dict[str, set[str]]()
    for name in LOCKS:
        for package in _toml(source.text(name)).get("package", []):
            about = package if isinstance(package, dict) else {}
            found.setdefault(_plain(str(about.get("name"))), set()).add(str(about.get("version")))
    one = re.compile(r"[\w.!+-]+")
    return {name: version for name, (version, *others) in found.items() if not others and one.fullmatch(version)}


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _toml(text: str) -> dict[str, Any]:
    try:
        return toml_of(text)
    except tomllib.TOMLDecodeError:
        return {}
