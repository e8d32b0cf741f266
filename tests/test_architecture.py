"""Holds the code to the design: who may import whom, what only one place may use, and how long things may get.

A rule is a function from sources to violations, each `file:line: what is wrong`. The second half of this file shows
for every rule, on small made-up sources, that it can fail.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")

LAYERS = {
    name: int(layer)
    for layer, names in re.findall(r"^\| (\d+) \| (.*?) \|", PAGE, re.MULTILINE)
    for name in re.findall(r"`(\w+)(?:\.py|/)`", names)
}
"""Part of evogit/ (a file or a folder) -> its layer; `evogit/__init__.py` re-exports to users."""

OWNERS = {
    "docker": "sandbox",
    "h11": "llm",
    "httpx2": "llm",
    "openai": "llm",
    "pygit2": "repository",
    "ray": "evaluation",
    "starlette": "page",
    "uvicorn": "page",
    "yaml": "adopt",
}
"""Third-party module -> the only part that imports it."""

BROUGHT = {
    "numpy": "matplotlib",
    "pydantic_core": "pydantic",
    "requests": "docker",
    "yaml": "PyYAML",
}
"""Module that is part of a declared dependency's interface -> that dependency, which brings it."""

NEVER_IMPORTED = {"marshal": "tests/", "pickle": "tests/", "shelve": "tests/", "unittest.mock": ""}
"""Nothing is unpickled, nothing of ours is mocked: module -> the folder that may (attacks in tests send pickles)."""

LONGEST_FUNCTION = 50

BROAD_EXCEPTS = {"evogit/engine/engine.py": "the agent boundary: an unknown exception would cancel every other agent"}
"""File that may have one broad `except` -> why."""


STARTING_MODULES = {"_posixsubprocess", "multiprocessing", "posix", "pty", "subprocess", "webbrowser"}
"""Modules that start processes, and are imported nowhere but where `STARTERS` says."""

STARTING_CALLS = re.compile(
    r"(?:.*\.)?(?:create_subprocess_(?:exec|shell)|subprocess_(?:exec|shell)|ProcessPoolExecutor)"
    r"|os\.(?:exec[lv]p?e?|spawn[lv]p?e?|posix_spawnp?|system|popen|fork|forkpty|startfile)|sys\.executable"
)
"""Functions that do, whatever they are imported as, and the path of the Python that a command line would begin with."""

JAIL = "it runs in a jail, or begins at / with our own environment"

STARTERS: dict[str, tuple[set[str], str]] = {
    "evogit/bench/workers.py": ({"multiprocessing"}, "sets PYTHONSAFEPATH for what multiprocessing starts"),
    "evogit/cli/background_process.py": ({"os.fork"}, "goes on in a fork: nothing is imported anew"),
    "evogit/cli/commands/doctor.py": ({"sys.executable"}, "prints it"),
    "evogit/cli/commands/serve.py": ({"webbrowser"}, "the browser of a user who typed --open"),
    "evogit/evaluation/evaluator_main.py": ({"os.fork"}, "the evaluator processes"),
    "evogit/library/calls.py": ({"os.fork"}, "calls a function in a fork"),
    "evogit/scaffold/profiler.py": ({"subprocess"}, JAIL),
    "evogit/sandbox/interpreter.py": ({"sys.executable"}, "finds the Python of sandboxes"),
    "evogit/subprocesses.py": ({"subprocess", "create_subprocess_exec", "sys.executable"}, "the one place"),
    "sandbox/foreign/evaluate_container.py": ({"subprocess"}, JAIL),
    "sandbox/foreign/evaluate_harbor.py": ({"subprocess"}, JAIL),
    "sandbox/foreign/evaluate_shinka.py": ({"subprocess", "sys.executable"}, JAIL),
    "sandbox/foreign/foreign_view.py": ({"sys.executable"}, JAIL),
    "sandbox/foreign/shinka_eval.py": ({"ProcessPoolExecutor"}, JAIL),
    "sandbox/jail_main.py": ({"os.execvp"}, JAIL),
    "sandbox/jail_places.py": ({"os.fork"}, JAIL),
    "sandbox/jail_program.py": ({"os.fork", "os.execvp"}, JAIL),
    "sandbox/porter.py": ({"subprocess", "create_subprocess_exec"}, JAIL),
}
"""File -> what it may use that starts a process, and why; nothing else of evogit/, sandbox/ and tasks/ may."""

GIT_STARTERS = {"evogit/repository/git.py", "evogit/repository/person_git.py"}
"""Files that write the command line of a git."""


@dataclass(frozen=True)
class Source:
    """One parsed file; `path` is relative to the root, with forward slashes."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.path)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Of the whole tree; several rules look at each."""
        return list(ast.walk(self.tree))

    @cached_property
    def imported(self) -> list[tuple[int, str]]:
        """Line and full name of everything imported anywhere in the file."""
        return list(imports(self))

    @property
    def module(self) -> str:
        return self.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    @property
    def in_package(self) -> bool:
        return self.path.startswith("evogit/")


Rule = Callable[[Sequence[Source]], Iterator[str]]


def project() -> list[Source]:
    """Every Python file that is ours: all but the seeds of tasks."""
    folders = [ROOT / name for name in ("benchmarks", "evogit", "sandbox", "tasks", "tests")]
    files = [file for folder in folders for file in sorted(folder.rglob("*.py")) if "seed" not in file.parts]
    return [Source(file.relative_to(ROOT).as_posix(), file.read_text(encoding="utf-8")) for file in files]


def part(module: str) -> str:
    """`evogit.sandbox.values` -> `sandbox`; `evogit` itself -> the empty string."""
    return (module.split(".") + [""])[1]


def imports(source: Source) -> Iterator[tuple[int, str]]:
    """Line and full name of everything imported anywhere in the file, lazily or for types alone, too.

    `from a import b` gives `a.b`, since `b` may be a module.
    """
    package = source.module if source.path.endswith("__init__.py") else source.module.rpartition(".")[0]
    for node in source.nodes:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            origin = ".".join([*above, *filter(None, [node.module])])
            yield from ((node.lineno, f"{origin}.{alias.name}") for alias in node.names)


def is_within(name: str, module: str) -> bool:
    """Whether `name` is `module` or something in it."""
    return name == module or name.startswith(module + ".")


# --- rules ------------------------------------------------------------------------------------------------------


def imports_go_one_way(sources: Sequence[Source]) -> Iterator[str]:
    """A part imports only from lower layers, as CONTRIBUTING.md has them; the highest may use the face, as users do."""
    for source in sources:
        importer = part(source.module)
        if not source.in_package or not importer or importer == "__main__":
            continue
        if importer not in LAYERS:
            yield f"{source.path}:1: {importer} has no layer; give it one in CONTRIBUTING.md"
            continue
        for line, name in source.imported:
            imported = part(name)
            if not is_within(name, "evogit") or imported in (importer, "__version__"):
                continue
            if imported not in LAYERS and LAYERS[importer] == max(LAYERS.values()):
                continue
            if imported not in LAYERS:
                yield f"{source.path}:{line}: imports {name}; import from the module that defines it"
            elif LAYERS[imported] >= LAYERS[importer]:
                yield f"{source.path}:{line}: {importer} must not import {imported}, which is not in a lower layer"


def imports_have_no_cycle(sources: Sequence[Source]) -> Iterator[str]:
    """No module imports itself through others, inside a folder neither."""
    modules = {source.module: source for source in sources if source.in_package}

    def module_of(name: str) -> str:
        while name not in modules and "." in name:
            name = name.rpartition(".")[0]
        return name

    edges = {name: {module_of(imported) for _, imported in source.imported} for name, source in modules.items()}
    for start in edges:
        paths = deque([[start]])
        reached: set[str] = set()
        while paths and start not in reached:
            path = paths.popleft()
            found = edges.get(path[-1], set()) - reached
            reached |= found
            paths.extend([*path, name] for name in sorted(found))
            if start in found:
                yield f"{modules[start].path}:1: imports itself: {' -> '.join([*path, start])}"


def commands_stand_alone(sources: Sequence[Source]) -> Iterator[str]:
    """A command imports from no other command, and nothing that commands share imports from one."""
    commands = "evogit.cli.commands"
    for source in sources:
        for line, name in source.imported:
            if is_within(source.module, "evogit.cli") and is_within(name, commands):
                yield f"{source.path}:{line}: imports {name}; move what is shared into evogit/cli"


def third_party_has_one_owner(sources: Sequence[Source]) -> Iterator[str]:
    """One place imports each of pygit2, docker, openai and others."""
    for source in sources:
        for line, name in source.imported:
            owner = OWNERS.get(name.split(".")[0])
            if source.in_package and owner and part(source.module) != owner:
                yield f"{source.path}:{line}: only evogit/{owner} imports {name.split('.')[0]}"


def some_modules_are_never_imported(sources: Sequence[Source]) -> Iterator[str]:
    """Nothing of ours unpickles or mocks."""
    for source in sources:
        for line, name in source.imported:
            folders = [folder for banned, folder in NEVER_IMPORTED.items() if is_within(name, banned)]
            if any(not folder or not source.path.startswith(folder) for folder in folders):
                yield f"{source.path}:{line}: {name} is never imported"


def sandbox_content_needs_only_python(sources: Sequence[Source]) -> Iterator[str]:
    """What runs inside a jail imports the standard library and its neighbours alone."""
    inside = [source for source in sources if source.path.startswith("sandbox/")]
    available = sys.stdlib_module_names | {Path(source.path).stem for source in inside}
    for source in inside:
        for line, name in source.imported:
            if name.split(".")[0] not in available:
                yield f"{source.path}:{line}: imports {name}, but a jail has only the standard library"


def references_are_never_forced(sources: Sequence[Source]) -> Iterator[str]:
    """Creating a reference with `force` loses concurrent updates without a word."""
    for source in sources:
        for node in source.nodes:
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            creates = node.func.attr.startswith(("create_reference", "create_branch"))
            creates |= node.func.attr == "create" and ast.unparse(node.func.value).endswith("references")
            force = [*node.args[2:3], *(keyword.value for keyword in node.keywords if keyword.arg == "force")]
            if creates and any(ast.unparse(value) != "False" for value in force):
                yield f"{source.path}:{node.lineno}: {node.func.attr} with force; use lookup and set_target"


def is_broad(node: ast.AST) -> bool:
    """Whether it swallows any exception whatever; one that re-raises at its end does not."""
    if isinstance(node, ast.ExceptHandler):
        caught, swallows = node.type, not isinstance(node.body[-1], ast.Raise)
    elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("suppress") and node.args:
        caught, swallows = ast.Tuple(node.args), True
    else:
        return False
    names = {ast.unparse(name) for name in (caught.elts if isinstance(caught, ast.Tuple) else [caught]) if name}
    return swallows and (caught is None or not names.isdisjoint({"Exception", "BaseException"}))


def excepts_are_narrow(sources: Sequence[Source]) -> Iterator[str]:
    """An `except` names what it expects; the places where that is wrong are listed."""
    for source in sources:
        lines = [node.lineno for node in source.nodes if is_broad(node)]  # type: ignore[attr-defined]
        for line in sorted(lines)[source.path in BROAD_EXCEPTS :]:
            if source.in_package:
                yield f"{source.path}:{line}: broad except; name the exceptions"


INSIDE = ("sandbox/", "tests/hostile/")
"""What runs in the candidate's own process, whose generator is the candidate's."""


def nothing_is_global(sources: Sequence[Source]) -> Iterator[str]:
    """State and random generators are passed in, and nothing waits for the garbage collector."""
    for source in sources:
        for node in source.nodes:
            match node:
                case ast.Global():
                    yield f"{source.path}:{node.lineno}: global statement; pass the state in"
                case ast.FunctionDef(name="__del__"):
                    yield f"{source.path}:{node.lineno}: __del__; use a context manager"
                case ast.Call(func=ast.Attribute(value=ast.Name(id="random"), attr=name)) if name[
                    0
                ].islower() and not source.path.startswith(INSIDE):
                    yield f"{source.path}:{node.lineno}: random.{name}; pass a random.Random in"


def starting(source: Source) -> Iterator[tuple[int, str]]:
    """Line and name of everything in a file that starts a process, or would be the Python of one that is started."""
    aliases = {"os": "os", "sys": "sys"}
    for node in source.nodes:
        if isinstance(node, ast.Import):
            aliases |= {alias.asname: alias.name for alias in node.names if alias.asname}
    for line, name in source.imported:
        if name.split(".")[0] in STARTING_MODULES:
            yield line, name.split(".")[0]
        elif STARTING_CALLS.fullmatch(name):
            yield line, name
    for node in source.nodes:
        match node:
            case ast.Attribute(attr=name):
                module = ast.unparse(node.value)
                if STARTING_CALLS.fullmatch(full := f"{aliases.get(module, module)}.{name}"):
                    yield node.lineno, full
            case (
                ast.Call(func=ast.Name(id="getattr" | "__import__" | "import_module"))
                | ast.Call(func=ast.Attribute(attr="import_module"))
            ):
                for text in (each.value for each in node.args if isinstance(each, ast.Constant)):
                    if text in STARTING_MODULES or STARTING_CALLS.fullmatch(f"os.{text}"):
                        yield node.lineno, str(text)


def processes_start_in_one_place(sources: Sequence[Source]) -> Iterator[str]:
    """Only evogit/subprocesses.py starts processes, and only repository/ a git; others are listed, with why."""
    for source in sources:
        if not source.path.startswith(("evogit/", "sandbox/", "tasks/")):
            continue
        allowed, _ = STARTERS.get(source.path, (set(), ""))
        for line, name in starting(source):
            if allowed.isdisjoint({name, name.rpartition(".")[2]}):
                yield f"{source.path}:{line}: {name} starts a process; use evogit/subprocesses.py"
        if source.in_package and source.path not in GIT_STARTERS:
            for node in source.nodes:
                words = [each for each in getattr(node, "elts", []) if not isinstance(each, ast.Starred)]
                if words and isinstance(words[0], ast.Constant) and words[0].value == "git":
                    yield f"{source.path}:{words[0].lineno}: starts git; use evogit/repository/git.py"


def objects_are_read_in_one_place(sources: Sequence[Source]) -> Iterator[str]:
    """Only repository/objects.py gets objects of Git by their ids, as anybody may have written what libgit2 refuses."""
    for source in sources:
        for node in source.nodes if source.in_package and source.path != "evogit/repository/objects.py" else ():
            if isinstance(node, ast.Call) and re.fullmatch(r"(.*\.)?_?repo\.get", ast.unparse(node.func)):
                yield f"{source.path}:{node.lineno}: use read_object of repository/objects.py"


def functions_are_short(sources: Sequence[Source]) -> Iterator[str]:
    """No function has more than LONGEST_FUNCTION lines besides its docstring."""
    for source in sources:
        for node in source.nodes if source.in_package else ():
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = len(range(node.lineno, node.end_lineno or 0)) + 1
                if ast.get_docstring(node):
                    lines -= (node.body[0].end_lineno or 0) - node.body[0].lineno + 1
                if lines > LONGEST_FUNCTION:
                    yield f"{source.path}:{node.lineno}: {node.name} has {lines} lines, over {LONGEST_FUNCTION}"


RULES: tuple[Rule, ...] = (
    imports_go_one_way,
    imports_have_no_cycle,
    commands_stand_alone,
    third_party_has_one_owner,
    some_modules_are_never_imported,
    sandbox_content_needs_only_python,
    references_are_never_forced,
    excepts_are_narrow,
    nothing_is_global,
    processes_start_in_one_place,
    objects_are_read_in_one_place,
    functions_are_short,
)


@pytest.fixture(scope="module")
def ours() -> list[Source]:
    return project()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_project_keeps_the_rule(rule: Rule, ours: list[Source]) -> None:
    if violations := list(rule(ours)):
        pytest.fail("\n".join([rule.__doc__ or rule.__name__, *violations]), pytrace=False)


def test_the_rules_see_the_project(ours: list[Source]) -> None:
    assert {"evogit/core.py", "tests/test_architecture.py"} <= {source.path for source in ours}
    assert not [source.path for source in ours if "/seed/" in source.path]


def test_the_page_names_every_part_once_and_no_other() -> None:
    parts = {
        path.stem for path in (ROOT / "evogit").iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert parts - {"__init__", "__main__"} == set(LAYERS)


# --- every rule can fail ----------------------------------------------------------------------------------------

LONG_BODY = "    x = 1\n" * 50
IMPORT_COMMAND = "from evogit.cli.commands.a import a"
A_COMMAND = "evogit/cli/commands/a.py:1"

BAD: Iterable[tuple[Rule, dict[str, str], list[str]]] = (
    (imports_go_one_way, {"evogit/core.py": "import evogit.config"}, ["evogit/core.py:1"]),
    (imports_go_one_way, {"evogit/core.py": "\nfrom evogit import run"}, ["evogit/core.py:2"]),
    (imports_go_one_way, {"evogit/agents/a.py": "from evogit.selection import Move"}, ["evogit/agents/a.py:1"]),
    (imports_go_one_way, {"evogit/agents/a.py": "from ..cli import main"}, ["evogit/agents/a.py:1"]),
    (imports_go_one_way, {"evogit/run.py": "def f():\n    from evogit.cli import x"}, ["evogit/run.py:2"]),
    (imports_go_one_way, {"evogit/judge.py": "from evogit import Case"}, ["evogit/judge.py:1"]),
    (imports_go_one_way, {"evogit/utils.py": ""}, ["evogit/utils.py:1"]),
    (
        imports_have_no_cycle,
        {"evogit/cli/a.py": "from evogit.cli import b", "evogit/cli/b.py": "from .a import x"},
        ["evogit/cli/a.py:1", "evogit/cli/b.py:1"],
    ),
    (commands_stand_alone, {"evogit/cli/commands/a.py": "from evogit.cli.commands.b import x"}, [A_COMMAND]),
    (commands_stand_alone, {"evogit/cli/commands/a.py": "from .b import x"}, [A_COMMAND]),
    (commands_stand_alone, {"evogit/cli/a.py": "def f():\n    from .commands import b"}, ["evogit/cli/a.py:2"]),
    (third_party_has_one_owner, {"evogit/review.py": "import pygit2"}, ["evogit/review.py:1"]),
    (third_party_has_one_owner, {"evogit/cli/x.py": "from pygit2.enums import Y"}, ["evogit/cli/x.py:1"]),
    (some_modules_are_never_imported, {"evogit/core.py": "import pickle"}, ["evogit/core.py:1"]),
    (some_modules_are_never_imported, {"tests/t.py": "from unittest import mock"}, ["tests/t.py:1"]),
    (sandbox_content_needs_only_python, {"sandbox/s.py": "import os\nimport numpy"}, ["sandbox/s.py:2"]),
    (references_are_never_forced, {"tests/t.py": "r.create_reference(n, t, force=True)"}, ["tests/t.py:1"]),
    (references_are_never_forced, {"tests/t.py": "r.references.create(n, t, True)"}, ["tests/t.py:1"]),
    (excepts_are_narrow, {"evogit/core.py": "try: f()\nexcept: pass"}, ["evogit/core.py:2"]),
    (excepts_are_narrow, {"evogit/core.py": "try: f()\nexcept (OSError, Exception): pass"}, ["evogit/core.py:2"]),
    (excepts_are_narrow, {"evogit/core.py": "with suppress(BaseException): f()"}, ["evogit/core.py:1"]),
    (
        excepts_are_narrow,
        {"evogit/engine/engine.py": "try: f()\nexcept Exception: g()\n" * 2},
        ["evogit/engine/engine.py:4"],
    ),
    (nothing_is_global, {"evogit/core.py": "def f():\n    global x"}, ["evogit/core.py:2"]),
    (nothing_is_global, {"evogit/core.py": "class A:\n    def __del__(self): ..."}, ["evogit/core.py:2"]),
    (nothing_is_global, {"evogit/core.py": "random.shuffle(x)"}, ["evogit/core.py:1"]),
    (processes_start_in_one_place, {"evogit/core.py": "import subprocess as s"}, ["evogit/core.py:1"]),
    (processes_start_in_one_place, {"tasks/t/evaluate.py": "from subprocess import run"}, ["tasks/t/evaluate.py:1"]),
    (processes_start_in_one_place, {"evogit/a.py": "from multiprocessing import pool"}, ["evogit/a.py:1"]),
    (processes_start_in_one_place, {"evogit/a.py": "import pty"}, ["evogit/a.py:1"]),
    (processes_start_in_one_place, {"evogit/a.py": "\nasyncio.create_subprocess_exec('x')"}, ["evogit/a.py:2"]),
    (processes_start_in_one_place, {"evogit/a.py": "loop.subprocess_shell(f, 'x')"}, ["evogit/a.py:1"]),
    (processes_start_in_one_place, {"evogit/a.py": "from asyncio import create_subprocess_shell"}, ["evogit/a.py:1"]),
    (processes_start_in_one_place, {"evogit/a.py": "import os as o\no.system('x')"}, ["evogit/a.py:2"]),
    (processes_start_in_one_place, {"evogit/a.py": "from os import execv as run"}, ["evogit/a.py:1"]),
    (processes_start_in_one_place, {"evogit/a.py": "os.posix_spawn(x, [], {})"}, ["evogit/a.py:1"]),
    (
        processes_start_in_one_place,
        {"evogit/a.py": "import concurrent.futures as f\nf.ProcessPoolExecutor()"},
        ["evogit/a.py:2"],
    ),
    (processes_start_in_one_place, {"evogit/a.py": "getattr(os, 'popen')('x')"}, ["evogit/a.py:1"]),
    (processes_start_in_one_place, {"evogit/a.py": "importlib.import_module('subprocess')"}, ["evogit/a.py:1"]),
    (processes_start_in_one_place, {"evogit/a.py": "x = [sys.executable, '-c', y]"}, ["evogit/a.py:1"]),
    (processes_start_in_one_place, {"evogit/a.py": "start(['git', 'gc'], env={})"}, ["evogit/a.py:1"]),
    (processes_start_in_one_place, {"evogit/bench/workers.py": "import subprocess"}, ["evogit/bench/workers.py:1"]),
    (processes_start_in_one_place, {"sandbox/porter.py": "import pty"}, ["sandbox/porter.py:1"]),
    (objects_are_read_in_one_place, {"evogit/a.py": "self._repo.get(name)"}, ["evogit/a.py:1"]),
    (functions_are_short, {"evogit/core.py": f"def f():\n{LONG_BODY}"}, ["evogit/core.py:1"]),
)

GOOD: Iterable[tuple[Rule, dict[str, str]]] = (
    (imports_go_one_way, {"evogit/run.py": "from evogit.core import X\nfrom evogit import __version__, config"}),
    (imports_go_one_way, {"evogit/history/a.py": "from evogit.stats.b import P", "evogit/cli/a.py": "from . import b"}),
    (imports_go_one_way, {"evogit/__init__.py": "from evogit.run import Run", "tests/t.py": "import evogit.cli"}),
    (imports_go_one_way, {"evogit/testing.py": "from evogit import Run, Task"}),
    (imports_have_no_cycle, {"evogit/cli/__init__.py": "from evogit.cli.a import x", "evogit/cli/a.py": "import os"}),
    (commands_stand_alone, {"evogit/cli/commands/a.py": "from evogit.cli.b import x", "tests/t.py": IMPORT_COMMAND}),
    (third_party_has_one_owner, {"evogit/repository.py": "import pygit2", "tests/t.py": "import pygit2"}),
    (some_modules_are_never_imported, {"tests/hostile/attacks.py": "import pickle"}),
    (sandbox_content_needs_only_python, {"sandbox/s.py": "import os\nfrom t import x", "sandbox/t.py": ""}),
    (references_are_never_forced, {"evogit/repository.py": "r.create_reference(name, target)"}),
    (excepts_are_narrow, {"evogit/core.py": "try: f()\nexcept Exception:\n    g()\n    raise"}),
    (
        excepts_are_narrow,
        {"evogit/engine/engine.py": "try: f()\nexcept Exception: g()", "evogit/cli/a.py": "suppress(OSError)"},
    ),
    (nothing_is_global, {"evogit/core.py": "random.Random(1).shuffle(x)"}),
    (nothing_is_global, {"sandbox/jail_program.py": "random.seed(1)"}),
    (processes_start_in_one_place, {"evogit/subprocesses.py": "import subprocess", "tests/t.py": "import subprocess"}),
    (processes_start_in_one_place, {"evogit/a.py": "import asyncio\nserver.fork(x)\nplatform.system()\nos.path"}),
    (objects_are_read_in_one_place, {"evogit/a.py": "x.get(repo)", "evogit/repository/objects.py": "repo.get(x)"}),
    (functions_are_short, {"evogit/core.py": 'def f():\n    """One.\n\n    Two.\n    """\n' + LONG_BODY[10:]}),
)


def made_up(files: dict[str, str]) -> list[Source]:
    return [Source(path, text) for path, text in files.items()]


@pytest.mark.parametrize(("rule", "files", "places"), BAD)
def test_the_rule_finds_the_violation(rule: Rule, files: dict[str, str], places: list[str]) -> None:
    found = [violation.rsplit(": ", 1)[0].split(": ")[0] for violation in rule(made_up(files))]
    assert found == places


@pytest.mark.parametrize(("rule", "files"), GOOD)
def test_the_rule_leaves_good_code_alone(rule: Rule, files: dict[str, str]) -> None:
    assert list(rule(made_up(files))) == []


def test_every_rule_is_shown_to_fail() -> None:
    assert {rule for rule, _, _ in BAD} == set(RULES)


def test_what_may_start_processes_does(ours: list[Source]) -> None:
    """The list has nothing that is not needed any more."""
    for source in ours:
        if source.path in STARTERS:
            used = {name for _, full in starting(source) for name in (full, full.rpartition(".")[2])}
            assert STARTERS[source.path][0] <= used, source.path
    assert STARTERS.keys() <= {source.path for source in ours}


def test_what_is_imported_is_declared_and_nothing_else(ours: list[Source]) -> None:
    """An installation brings all that EvoGit imports; no test installs dependencies."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    brought = [each for name, requires in extras.items() if name != "dev" for each in requires]
    requirements = [*project["dependencies"], *brought]
    declared = {re.split(r"[^\w-]", requirement, maxsplit=1)[0] for requirement in requirements}
    tops = {name.split(".")[0] for source in ours if source.in_package for _, name in source.imported}
    foreign = {BROUGHT.get(top, top) for top in tops if top not in {*sys.stdlib_module_names, "evogit"}}
    assert foreign == declared
