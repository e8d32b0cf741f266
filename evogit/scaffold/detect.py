"""The kind of project that a tree holds: how it is tested and measured, what agents should change. It runs nothing."""

from __future__ import annotations

import re
import shlex
from pathlib import PurePosixPath

from msgspec.structs import replace

from evogit.config.printed_numbers import NUMBER, read_of
from evogit.scaffold.checkers import go_checks, rust_checks
from evogit.scaffold.javascript_project import javascript
from evogit.scaffold.project import BENCHMARK, Project, ProjectFiles, editable
from evogit.scaffold.python_project import python_files, python_package

GO_BENCHMARK = re.compile(r"^func (Benchmark\w*)\(", re.MULTILINE)
APART_IN_GO = re.compile(r"(.*/)?([_.][^/]*|testdata)/")
"""Paths that `./...` leaves out."""
TESTED_BY_CMAKE = re.compile(r"enable_testing|include\s*\(\s*CTest", re.IGNORECASE)
MAVEN = 'mvn -B -q -Dmaven.repo.local="$HOME/.m2"'  # Java asks the system, not the environment, where home is
TOOLS = {
    "Cargo.toml": Project(
        kind="a Rust crate",
        prepare="cargo fetch",
        build="cargo test --offline --release --no-run",
        tests="cargo test --offline --release",
        debian=("cargo",),
    ),
    "go.mod": Project(
        kind="a Go module", build="go test -run='^$' ./...", tests="go test -count=1 ./...", debian=("golang-go",)
    ),
    "pom.xml": Project(
        kind="a Java project with Maven",
        prepare=f"{MAVEN} test",  # fetches what tests need
        build=f"{MAVEN} -o test-compile",
        tests=f"{MAVEN} -o test",
        debian=("maven", "default-jdk-headless"),
    ),
}
"""A tool's file at the top -> the project that it belongs to."""
SOURCES = {"Cargo.toml": re.compile(r"\.rs$"), "go.mod": re.compile(r"\.go$"), "pom.xml": re.compile(r"\.(java|kt)$")}
"""The same -> its sources; all else is data or a tool."""
C_SOURCES = re.compile(r"\.([ch]|cc|cpp|cxx|hpp|hh|hxx|inl)$")
C_TOOLS = {
    "CMakeLists.txt": Project(
        kind="CMake",
        build="cmake -S . -B build -DCMAKE_BUILD_TYPE=Release && cmake --build build",
        tests="ctest --test-dir build --output-on-failure",
        debian=("cmake", "make"),
    ),
    "meson.build": Project(
        kind="Meson",
        build="{ [ -d build ] || meson setup build --buildtype=release; } && meson compile -C build",
        tests="meson test -C build --print-errorlogs",
        debian=("meson",),
    ),
    "configure": Project(
        kind="Autotools",
        build="{ [ -f Makefile ] || { sh ./configure; }; } && make && make check TESTS=",
        tests="make check",
        debian=("make",),
    ),
    "configure.ac": Project(
        kind="Autotools",
        build="{ [ -f Makefile ] || { autoreconf -fi && sh ./configure; }; } && make && make check TESTS=",
        tests="make check",
        debian=("autoconf", "automake", "libtool", "make"),
    ),
}
"""The same of C and C++, whose compiler is found out."""


def detect(source: ProjectFiles) -> Project:
    """Find the project's kind from the files that its tools would look for; those with odd names do not count."""
    source = ProjectFiles([path for path in source.paths if path.isprintable()], source.read, source.version)
    kinds = (python_package, javascript, _by_tool, _by_make, _by_c_tool, python_files)
    return next(filter(None, (kind(source) for kind in kinds)), Project(editable=editable(source.paths)))


def _by_tool(source: ProjectFiles) -> Project | None:
    """A project in Rust, Go or Java. Go has no other measure than a benchmark that is its only one."""
    if not (file := source.first(*TOOLS)):
        return None
    sources = editable(source.paths, SOURCES[file])
    checks = {"go.mod": go_checks(sources), "Cargo.toml": rust_checks(source)}.get(file, "")
    project = replace(TOOLS[file], editable=sources, checks=checks)
    if file == "go.mod":
        tests = [path for path in source.paths if path.endswith("_test.go")]
        benchmarks = [(path, name) for path in tests for name in GO_BENCHMARK.findall(source.text(path))]
        is_fetched = source.first("vendor/modules.txt") or not source.first("go.sum")
        project = replace(project, prepare="" if is_fetched else "go mod download")
        if len(benchmarks) == 1:
            (path, name), reads = benchmarks[0], {"nanoseconds": f"regex:{NUMBER} ns/op"}
            run, folder = f"go test -run='^$' -bench='^{name}$'", str(PurePosixPath(path).parent)
            if not APART_IN_GO.match(path) and not source.first(f"{folder}/go.mod"):
                return replace(project, benchmark=f"{run} ./...", reads=reads)
            place = f"cd {shlex.quote(folder)}"
            own = f"({place} && go mod download)" if source.first(f"{folder}/go.sum") else ""
            prepare = " && ".join(filter(None, (project.prepare, own)))
            return replace(project, prepare=prepare, benchmark=f"{place} && {run}", reads=reads)
    return project


def _by_make(source: ProjectFiles) -> Project | None:
    """A project whose Makefile has a target for tests or a benchmark."""
    text = source.text(source.first("GNUmakefile", "makefile", "Makefile"))
    targets = set(re.findall(r"^([\w.-]+)(?: [\w. -]*)?:(?!=)", text, re.MULTILINE))
    tests = next((name for name in ("test", "check", "tests") if name in targets), "")
    benchmark = next((name for name in ("bench", "benchmark", "perf") if name in targets), "")
    if not tests and not benchmark:
        return None
    language, compiler = _language(source)
    return Project(
        kind=f"{language or 'a project'} with make",
        tests=f"make {tests}" if tests else "",
        benchmark=f"make {benchmark}" if benchmark else "",
        reads=read_of(map(source.text, source.matching(BENCHMARK))) if benchmark else {},
        editable=editable(source.paths, C_SOURCES) if language else editable(source.paths),
        debian=("make", *compiler),
    )


def _by_c_tool(source: ProjectFiles) -> Project | None:
    """A project that CMake, Meson or Autotools configures."""
    if not (file := source.first(*C_TOOLS)) or (file == "configure" and not source.first("configure.ac")):
        return None
    project, (language, compiler) = C_TOOLS[file], _language(source)
    lists = (path for path in source.paths if path.endswith("CMakeLists.txt"))
    is_tested = file != "CMakeLists.txt" or any(TESTED_BY_CMAKE.search(source.text(path)) for path in lists)
    return replace(
        project,
        kind=f"{language or 'a C project'} with {project.kind}",
        tests=project.tests if is_tested else "",
        editable=editable(source.paths, C_SOURCES),
        debian=(*project.debian, *(compiler or ("gcc", "libc6-dev"))),
    )


def _language(source: ProjectFiles) -> tuple[str, tuple[str, ...]]:
    """The language of a project's sources, C or C++, and its Debian packages; empty if there are none."""
    if any(path.endswith((".cc", ".cpp", ".cxx")) for path in source.paths):
        return "a C++ project", ("g++", "libc6-dev")
    return ("a C project", ("gcc", "libc6-dev")) if any(path.endswith(".c") for path in source.paths) else ("", ())
