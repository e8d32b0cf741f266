"""How projects in compiled languages are fetched, built and tested by the tools that their files belong to."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from evogit.config.printed_numbers import NUMBER, read_of
from evogit.scaffold.project import BENCHMARK, Project, ProjectFiles, editable

GO_BENCHMARK = re.compile(r"^func (Benchmark\w*)\(", re.MULTILINE)
MAVEN = 'mvn -B -q -Dmaven.repo.local="$HOME/.m2"'  # java asks the system, not the environment, where home is


def rust(source: ProjectFiles) -> Project | None:
    """A crate, tested as it will be used: with optimisation."""
    if not source.first("Cargo.toml"):
        return None
    benches = [path for path in source.paths if path.startswith("benches/") and path.endswith(".rs")]
    reads = read_of(map(source.text, benches))
    return Project(
        kind="a Rust crate",
        prepare="cargo fetch",
        build="cargo test --offline --release --no-run",
        tests="cargo test --offline --release",
        benchmark="cargo bench --offline" if reads else "",
        reads=reads,
        editable=editable(source.paths),
        debian=("cargo",),
    )


def go(source: ProjectFiles) -> Project | None:
    """A module; measured is its benchmark if it has one alone, as the number of a second one would hide the first."""
    if not source.first("go.mod"):
        return None
    tests = [path for path in source.paths if path.endswith("_test.go")]
    benchmarks = [name for path in tests for name in GO_BENCHMARK.findall(source.text(path))]
    return Project(
        kind="a Go module",
        prepare="" if source.first("vendor/modules.txt") or not source.first("go.sum") else "go mod download",
        build="go test -run='^$' ./...",
        tests="go test -count=1 ./...",
        benchmark=f"go test -run='^$' -bench='^{benchmarks[0]}$' ./..." if len(benchmarks) == 1 else "",
        reads={"nanoseconds": f"regex:{NUMBER} ns/op"} if len(benchmarks) == 1 else {},
        editable=editable(source.paths),
        debian=("golang-go",),
    )


def maven(source: ProjectFiles) -> Project | None:
    """A Java project; Maven fetches what tests need when they run, so they run once in `prepare`."""
    if not source.first("pom.xml"):
        return None
    return Project(
        kind="a Java project with Maven",
        prepare=f"{MAVEN} test",
        build=f"{MAVEN} -o test-compile",
        tests=f"{MAVEN} -o test",
        editable=editable(source.paths),
        debian=("maven", "default-jdk-headless"),
    )


def make(source: ProjectFiles) -> Project | None:
    """What has a Makefile with a target for tests or a benchmark."""
    text = source.text(source.first("GNUmakefile", "makefile", "Makefile"))
    targets = set(re.findall(r"^([\w.-]+)(?: [\w. -]*)?:(?!=)", text, re.MULTILINE))
    tests = next((name for name in ("test", "check", "tests") if name in targets), "")
    benchmark = next((name for name in ("bench", "benchmark", "perf") if name in targets), "")
    if not tests and not benchmark:
        return None
    compiled = any(path.endswith((".c", ".cc", ".cpp", ".cxx")) for path in source.paths)
    return Project(
        kind=f"{_language(source)} with make" if compiled else "a project with make",
        tests=f"make {tests}" if tests else "",
        benchmark=f"make {benchmark}" if benchmark else "",
        reads=read_of(map(source.text, source.matching(BENCHMARK))) if benchmark else {},
        editable=editable(source.paths),
        debian=("make", *_compiler(source)) if compiled else ("make",),
    )


def cmake(source: ProjectFiles) -> Project | None:
    """What CMake configures, tested by CTest."""
    if not source.first("CMakeLists.txt"):
        return None
    lists = (path for path in source.paths if path.endswith("CMakeLists.txt"))
    tested = any(re.search(r"enable_testing|include\s*\(\s*CTest", source.text(path), re.IGNORECASE) for path in lists)
    return Project(
        kind=f"{_language(source)} with CMake",
        build="cmake -S . -B build -DCMAKE_BUILD_TYPE=Release && cmake --build build",
        tests="ctest --test-dir build --output-on-failure" if tested else "",
        editable=editable(source.paths),
        debian=("cmake", "make", *_compiler(source)),
    )


def meson(source: ProjectFiles) -> Project | None:
    """What Meson configures and tests."""
    if not source.first("meson.build"):
        return None
    return Project(
        kind=f"{_language(source)} with Meson",
        build="{ [ -d build ] || meson setup build --buildtype=release; } && meson compile -C build",
        tests="meson test -C build --print-errorlogs",
        editable=editable(source.paths),
        debian=("meson", *_compiler(source)),
    )


def autotools(source: ProjectFiles) -> Project | None:
    """What Autoconf configures; `make check` builds its tests before it runs them."""
    script = source.first("configure", "autogen.sh", "bootstrap", "configure.ac")
    if not script or not source.first("configure.ac", "configure.in"):
        return None
    made = {"configure": "", "configure.ac": "autoreconf -fi && "}.get(script, f"sh ./{script} && ")
    tools = () if script == "configure" else ("autoconf", "automake", "libtool")
    return Project(
        kind=f"{_language(source)} with Autotools",
        build=f"{{ [ -f Makefile ] || {{ {made}sh ./configure; }}; }} && make && make check TESTS=",
        tests="make check",
        editable=editable(source.paths),
        debian=(*tools, "make", *_compiler(source)),
    )


def _language(source: ProjectFiles) -> str:
    return "a C++ project" if _plus(source) else "a C project"


def _compiler(source: ProjectFiles) -> tuple[str, ...]:
    return ("g++" if _plus(source) else "gcc", "libc6-dev")


def _plus(source: ProjectFiles) -> bool:
    return any(PurePosixPath(path).suffix in (".cc", ".cpp", ".cxx") for path in source.paths)
