"""What is found out about projects from their files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evogit.config import load_repository_task
from evogit.config.printed_numbers import direction_of, read_of
from evogit.core import ConfigError, RefusedError
from evogit.scaffold.detect import MAVEN, detect
from evogit.scaffold.project import Project, ProjectFiles, editable
from evogit.scaffold.repository_files import Choices, files, tried, write

PROJECTS = Path(__file__).parent.parent / "projects"


def found(texts: dict[str, str]) -> Project:
    return detect(ProjectFiles(list(texts), texts.__getitem__))


def real(name: str) -> Project:
    root = PROJECTS / name
    paths = [path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()]
    return detect(ProjectFiles(paths, lambda path: (root / path).read_text()))


def test_a_python_package_with_pytest_and_a_benchmark() -> None:
    project = real("python")
    assert (project.tests, project.benchmark) == ("python3 -m pytest -q", "python3 benchmark.py")
    assert (project.reads, project.editable) == ({"milliseconds": "json"}, ("textstats/**",))
    assert (project.python, project.debian) == (("pytest",), ())


def test_a_c_program_with_make() -> None:
    project = real("c")
    assert (project.tests, project.benchmark) == ("make test", "make bench")
    assert project.reads == {"milliseconds": "regex:took ([0-9.]+) ms"}
    assert (project.editable, project.debian) == (("src/**",), ("make", "gcc", "libc6-dev"))


def test_a_javascript_package_needs_no_npm_for_nodes_own_runner() -> None:
    project = real("javascript")
    assert (project.tests, project.benchmark) == ("node --test", "node bench.js")
    assert (project.reads, project.editable) == ({"milliseconds": "json"}, ("lib/**",))
    assert (project.debian, project.prepare) == (("nodejs",), "")


def test_a_javascript_package_with_dependencies_is_installed_first() -> None:
    package = {"scripts": {"test": "vitest run"}, "devDependencies": {"vitest": "^1"}}
    project = found({"package.json": json.dumps(package), "package-lock.json": "{}", "src/a.ts": ""})
    assert (project.tests, project.prepare) == ("npm run --silent test", "npm ci")
    assert "npm" in project.debian


@pytest.mark.parametrize("text", ["", "[]", "{", '{"scripts": {"test": 5}}', '{"scripts": ["test"]}'])
def test_a_damaged_package_json_is_a_package_about_which_nothing_is_known(text: str) -> None:
    assert found({"package.json": text, "index.js": ""}).tests == ""


def test_a_src_layout_with_unittest_and_requirements() -> None:
    project = found(
        {
            "pyproject.toml": '[project]\nname = "x"\ndependencies = ["numpy>=2", "x[all]", "y @ file:///y"]',
            "src/x/core.py": "",
            "tests/test_core.py": "import unittest",
        }
    )
    assert project.tests == 'PYTHONPATH="src:$PYTHONPATH" python3 -m unittest discover -s tests'
    assert (project.python, project.editable) == (("numpy>=2",), ("src/**",))


def test_plugins_of_pytest_are_needed_and_other_tools_of_developers_are_not() -> None:
    project = found(
        {
            "pyproject.toml": '[dependency-groups]\ndev = ["ruff", "pytest>=8", "pytest-cov", {include-group = "x"}]',
            "x.py": "",
            "test_x.py": "",
            "benchmarks/one.py": "",
            "benchmarks/two.py": "",
            "tests/bench.py": "",
        }
    )
    assert project.python == ("pytest>=8", "pytest-cov")
    assert project.benchmark == ""


def test_requirements_are_followed_through_extras_groups_and_files() -> None:
    project = found(
        {
            "pyproject.toml": """
[project]
name = "web"
dependencies = ["anyio"]
optional-dependencies = {full = ["httpx>=1", "web[yaml]"], yaml = ["PyYAML"], docs = ["sphinx"]}
[dependency-groups]
tests = [{include-group = "typed"}, "pytest"]
typed = ["typeguard", {include-group = "typed"}]
""",
            "requirements.txt": "-e .[full]\n-r requirements/base.txt # more\ncoverage==7.8\n",
            "requirements/base.txt": "--requirement ../requirements.txt\ntrio\n",
            "web/__init__.py": "",
            "tests/test_web.py": "",
        }
    )
    names = {"anyio", "httpx>=1", "PyYAML", "typeguard", "pytest", "trio", "coverage==7.8"}
    assert set(project.python) == names


@pytest.mark.parametrize(
    "files",
    [
        {
            "setup.cfg": "[options]\ninstall_requires =\n    attrs>=20\n    click\n"
            "[options.extras_require]\ntest =\n    pytest\n    respx\ndocs = sphinx\n"
        },
        {
            "setup.py": "setup(name='x', install_requires=('attrs>=20', 'click'), tests_require=TESTS,"
            " extras_require={'test': ['pytest', 'respx'], 'docs': ['sphinx'], 4: 5})"
        },
        {"setup.py": "", "requirements.txt": "attrs>=20 \\\n  --hash=sha256:a\nclick # why\npytest\nrespx\n-c c.txt\n"},
    ],
)
def test_requirements_of_setuptools_and_with_hashes_are_known(files: dict[str, str]) -> None:
    assert found({**files, "x/a.py": "", "tests/test_x.py": ""}).python == ("attrs>=20", "click", "pytest", "respx")


@pytest.mark.parametrize("setup", ["((((", "x = " + "(" * 100_000, "setup(extras_require={'test': 3})"])
def test_a_setup_that_cannot_be_read_is_no_obstacle(setup: str) -> None:
    project = found({"setup.py": setup, "setup.cfg": "[options\nx", "x/a.py": "", "tests/test_x.py": ""})
    assert (project.python, project.editable) == (("pytest",), ("x/**",))


def test_scripts_beside_an_installed_package_are_no_sources_unless_it_names_them() -> None:
    files = {"pyproject.toml": "[tool.x]\npy-modules = ['single']", "serve-doc.py": "", "single.py": "", "pkg/a.py": ""}
    assert found(files).editable == ("single.py", "pkg/**")
    assert found({"run.py": "", "pkg/a.py": "", "test_a.py": ""}).editable == ("run.py", "pkg/**")


def test_of_a_compiled_project_only_its_own_sources_change() -> None:
    paths = ("tinyxml2.cpp", "tinyxml2.h", "xmltest.cpp", "latest.cpp", "setversion.py", "contrib/html5.cpp")
    assert found({"Makefile": "test:\n", **dict.fromkeys(paths, "")}).editable == (
        "latest.cpp", "tinyxml2.cpp", "tinyxml2.h",
    )  # fmt: skip
    paths = ("a.go", "a_test.go", "_benchmark/cmark/main.c", "testutil/t.go", "util/u.go", "util/gen.py")
    assert found({"go.mod": "", **dict.fromkeys(paths, "")}).editable == ("a.go", "util/**")


@pytest.mark.parametrize("text", ["[", "project = 5", "[project]\ndependencies = 3", "[tool]\npoetry = []"])
def test_a_damaged_pyproject_is_no_obstacle(text: str) -> None:
    assert found({"pyproject.toml": text, "x.py": ""}).editable == ("x.py",)


@pytest.mark.parametrize(
    ("files", "prepare", "build", "tests"),
    [
        (
            {"Cargo.toml": ""},
            "cargo fetch",
            "cargo test --offline --release --no-run",
            "cargo test --offline --release",
        ),
        ({"go.mod": "", "go.sum": ""}, "go mod download", "go test -run='^$' ./...", "go test -count=1 ./..."),
        (
            {"go.mod": "", "go.sum": "", "vendor/modules.txt": ""},
            "",
            "go test -run='^$' ./...",
            "go test -count=1 ./...",
        ),
        ({"pom.xml": ""}, f"{MAVEN} test", f"{MAVEN} -o test-compile", f"{MAVEN} -o test"),
        (
            {"CMakeLists.txt": "enable_testing()"},
            "",
            "cmake -S . -B build -DCMAKE_BUILD_TYPE=Release && cmake --build build",
            "ctest --test-dir build --output-on-failure",
        ),
        (
            {"meson.build": ""},
            "",
            "{ [ -d build ] || meson setup build --buildtype=release; } && meson compile -C build",
            "meson test -C build --print-errorlogs",
        ),
        (
            {"configure.ac": "", "configure": ""},
            "",
            "{ [ -f Makefile ] || { sh ./configure; }; } && make && make check TESTS=",
            "make check",
        ),
    ],
    ids=["cargo", "go", "go vendored", "maven", "cmake", "meson", "autotools"],
)
def test_compiled_projects_are_built_before_what_is_measured(
    files: dict[str, str], prepare: str, build: str, tests: str
) -> None:
    project = found(files)
    assert (project.prepare, project.build, project.tests) == (prepare, build, tests)


def test_other_projects_tell_what_they_can() -> None:
    assert found({"CMakeLists.txt": "project(x)", "x.c": ""}).tests == ""
    assert found({"go.mod": "", "main.go": "", "main_test.go": ""}).editable == ("main.go",)
    assert found({"notes.txt": ""}) == Project()


def test_the_one_benchmark_of_a_go_module_is_measured() -> None:
    once = {"go.mod": "", "a_test.go": "func BenchmarkSort(b *testing.B) {"}
    assert found(once).benchmark == "go test -run='^$' -bench='^BenchmarkSort$' ./..."
    assert (found(once).reads, found({"go.mod": ""}).reads) == ({"nanoseconds": "regex:([0-9.]+) ns/op"}, {})
    assert found({**once, "b_test.go": once["a_test.go"]}).benchmark == ""
    own = found({"go.mod": "", "go.sum": "", "_b/go.mod": "", "_b/go.sum": "", "_b/a_test.go": once["a_test.go"]})
    assert own.prepare == "go mod download && (cd _b && go mod download)"
    apart = found({"go.mod": "", "_bench/go/a_test.go": once["a_test.go"]})
    assert apart.benchmark == "cd _bench/go && go test -run='^$' -bench='^BenchmarkSort$'"


@pytest.mark.parametrize(
    ("files", "manager", "command"),
    [
        ({"package-lock.json": "{}"}, "", "npm ci"),
        ({"yarn.lock": ""}, "", "npx --yes yarn@1 install --frozen-lockfile"),
        (
            {"yarn.lock": "", ".yarnrc.yml": ""},
            "yarn@4.5.0+sha224.1",
            "YARN_NODE_LINKER=node-modules npx --yes @yarnpkg/cli-dist@4.5.0 install --immutable",
        ),
        ({"pnpm-lock.yaml": "lockfileVersion: '6.0'\n"}, "", "npx --yes pnpm@8 install --frozen-lockfile"),
        ({"pnpm-lock.yaml": ""}, "pnpm@9.1.0", "npx --yes pnpm@9.1.0 install --frozen-lockfile"),
        ({}, "pnpm@9; rm -rf x", "npx --yes pnpm@9 install --frozen-lockfile"),
    ],
)
def test_the_package_manager_that_locked_a_package_installs_it(
    files: dict[str, str], manager: str, command: str
) -> None:
    package = {"dependencies": {"ms": "2"}, "packageManager": manager}
    assert found({"package.json": json.dumps(package), **files}).prepare == command


def test_lock_files_pin_what_tests_need_and_extras_of_ones_own_are_followed() -> None:
    lock = '[[package]]\nname = "{}"\nversion = "{}"\n'
    project = found(
        {
            "pyproject.toml": '[project]\nname = "my-tool"\ndependencies = ["Yaml.X>=1", "two"]\n'
            '[project.optional-dependencies]\ncolour = ["rich"]\ndev = ["my-tool[colour]", "pytest>=8", "black"]',
            "uv.lock": lock.format("yaml-x", "1.5") + lock.format("two", "1") + lock.format("two", "2"),
        }
    )
    assert project.python == ("Yaml.X==1.5", "two", "pytest>=8", "rich")
    poetry = (
        "[tool.poetry.dependencies]\npython = '^3'\nnumpy = {version = '^2', extras = ['a']}\nx = {optional = true}"
    )
    dev = "\n[tool.poetry.group.dev.dependencies]\npytest = '^8'\nmypy = '1'"
    project = found({"pyproject.toml": poetry + dev, "poetry.lock": lock.format("numpy", "2.1.0")})
    assert project.python == ("numpy[a]==2.1.0", "pytest")


def test_a_package_that_asks_for_its_own_version_is_installed() -> None:
    project = found(
        {
            "pyproject.toml": '[build-system]\nrequires = ["hatchling", "hatch-vcs"]',
            "src/x/__init__.py": "from importlib.metadata import version\n",
        }
    )
    command = "python3 -m pip install --user --break-system-packages --no-deps --no-build-isolation -e ."
    assert project.prepare == f"SETUPTOOLS_SCM_PRETEND_VERSION=0 {command}"
    assert project.python == ("pip", "hatchling", "hatch-vcs")


def test_odd_names_reach_no_command_and_no_glob() -> None:
    project = found({"setup.py": "", "x.py": "", "\x1b[2J.py": "", "benchmarks/my bench.py": ""})
    assert project.editable == ("x.py",)
    assert project.benchmark.endswith("python3 'benchmarks/my bench.py'")


def test_sources_are_editable_and_what_judges_them_is_not() -> None:
    paths = ["a/x.py", "a/sub/y.py", "b/z.py", "b/tests/test_z.py", "conftest.py", "main.py", "docs/conf.py"]
    assert editable(paths) == ("main.py", "a/**", "b/z.py")


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("print(json.dumps({'n': 5, 'opsPerSecond': x}))", {"opsPerSecond": "json"}),
        ('printf("{\\"name\\": 1, \\"score\\": %f}\\n", x);', {"score": "json"}),
        ("print(f'{{\"latency\": {x}}}')", {"latency": "json"}),
        ("console.log(`elapsed: ${x} s`)", {"seconds": "regex:elapsed: ([0-9.]+) s"}),
        ('print(f"sorted {n} items in {x:.2f} ms")', {"milliseconds": "regex:in ([0-9.]+) ms"}),
        ("print('done')", {}),
    ],
)
def test_what_a_benchmark_prints_is_found_in_its_source(text: str, reads: dict[str, str]) -> None:
    assert read_of([text]) == reads


def test_which_way_is_better_is_in_the_name() -> None:
    names = {"ops_per_second": "maximize", "errorRate": "minimize", "seconds": "minimize", "size": "minimize"}
    assert {name: direction_of(name, "json") for name in names} == names
    assert direction_of("quux", "json") is None
    assert direction_of("quux", "junit:report.xml") == "maximize"


# --- writing ------------------------------------------------------------------------------------------------------

CHOICES = Choices(
    name="tool",
    goal='Say "faster" \\ and\nmean it ☃',
    editable=("src/**",),
    tests="make test",
    work="./bench 'x' \"y\"",
    reads={"score": r"regex:score\s+(\d+)", "seconds": "cpu"},
    directions={"score": "maximize", "seconds": "minimize"},
    primary="seconds",
)


def test_what_is_written_means_what_was_chosen(tmp_path: Path) -> None:
    assert write(tmp_path, files(CHOICES), force=False)[:2] == ["evogit.toml", ".evogit/README.md"]
    task = load_repository_task(tmp_path)
    assert task.goal == CHOICES.goal
    assert task.primary.name == "seconds"
    assert task.command is not None
    assert (task.command.tests, task.command.text) == ("make test", CHOICES.work)
    assert task.command.reads["score"].what == r"score\s+(\d+)"


def test_a_file_that_is_there_is_replaced_only_when_asked_for(tmp_path: Path) -> None:
    write(tmp_path, files(CHOICES), force=False)
    (tmp_path / ".evogit" / "README.md").write_text("mine")
    with pytest.raises(RefusedError, match="--force"):
        write(tmp_path, files(CHOICES), force=False)
    assert ".evogit/README.md" not in write(tmp_path, files(CHOICES), force=True)
    assert (tmp_path / ".evogit" / "README.md").read_text() == "mine"


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / ".evogit").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RefusedError, match="symbolic link"):
        write(tmp_path / "repo", files(CHOICES), force=True)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_what_evogit_would_not_accept_is_found_before_it_is_written(tmp_path: Path) -> None:
    wrong = {**files(CHOICES), "evogit.toml": files(CHOICES)["evogit.toml"].replace('"1g"', '"lots"')}
    with pytest.raises(ConfigError, match=rf"^{tmp_path}/evogit.toml: sandbox.memory: expected a size"):
        tried(wrong, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_formatters_and_type_checkers_that_a_project_has_set_up_are_proposed() -> None:
    pyproject = "[tool.ruff]\n[tool.ruff.format]\n[tool.mypy]\nfiles = 'pkg'\n[dependency-groups]\ndev = ['mypy>=1']\n"
    hooks = "repos:\n- repo: https://github.com/astral-sh/ruff-pre-commit\n  rev: v0.12.1\n"
    python = found({"pyproject.toml": pyproject, ".pre-commit-config.yaml": hooks, "pkg/a.py": "", "test_a.py": ""})
    assert python.checks == ("python3 -m ruff check -q pkg && python3 -m ruff format -q --check pkg && python3 -m mypy")
    assert python.checkers == ("ruff==0.12.1", "mypy>=1")
    scripts = {"lint": "eslint .", "typecheck": "tsc --noEmit", "format:check": "prettier --write ."}
    package = {"scripts": {"test": "vitest run", **scripts}, "devDependencies": {"vitest": "1"}}
    javascript = found({"package.json": json.dumps(package), "package-lock.json": "{}", "src/a.ts": ""})
    assert javascript.checks == "npm run --silent lint && npm run --silent typecheck"
    assert found({"go.mod": "", "a.go": "", "util/u.go": ""}).checks == 'test -z "$(gofmt -l a.go util)"'
    assert found({"Cargo.toml": "", "src/a.rs": ""}).checks == ""
    assert found({"a.py": "", "test_a.py": ""}).checks == ""
