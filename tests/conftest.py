from __future__ import annotations

import fcntl
import gc
import os
import shutil
import signal
import sys
from collections.abc import Callable, Generator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings

from evogit.config import Task, load_task
from evogit.core import SandboxError
from evogit.trust import Claim, Trust
from tests.own import Own

DAEMON = os.environ.get("DOCKER_HOST", "")
NOWHERE = "unix:///nonexistent/docker.sock"

EVERYTHING = Claim("tree", "/")
"""Trusts whatever tests write; tests of trust itself begin with an empty state folder."""

MEMORY = Path("/dev/shm")
ROOM = 2 << 30
"""Bytes that must be free there; folders of tests that passed are removed."""

PROGRAM = """\
A = 1.0
B = 2.0
C = 3.0


def first(x):
    return A * x + B


def second(x):
    return C - x * x


def value(x):
    return first(x) + second(x)
"""

EVALUATE = """\
import time
from evogit import Case, Invalid

def evaluate(program, split):
    for x in {"smoke": [0], "train": [1, 2], "lite": [1], "holdout": [3]}[split]:
        y = program.call("program:value", args=[x], returns=float).value
        if y > 1e6:
            raise Invalid("expected a value of a million at most")
        yield Case(f"x={x}", score=-abs(y - 20))
"""


@pytest.fixture(scope="session", autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory) -> Generator[None]:
    """Give the tests a state folder that trusts what they write; the user's own stays as it is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        Trust.of_user().add(EVERYTHING)
        yield


collect_ignore = ["projects"]
"""Small projects of other people, as it were: their tests are for sandboxes."""

TOML = """\
name = "tiny"
goal = "Bring value(x) to 20."
editable = ["program.py", "extra/**"]
[metrics.score]
direction = "maximize"
best_known = 0
[evaluator]
kind = "python"
file = "evaluator/evaluate.py"
splits = ["smoke", "train", "holdout"]
novelty = "tree"
gate.smoke = "score > -1e9"
[sandbox]
timeout = "60s"
"""


def write_task(folder: Path, *, evaluate: str = EVALUATE, program: str = PROGRAM, toml: str = TOML) -> Path:
    """A task folder whose candidates take milliseconds."""
    (folder / "seed").mkdir(parents=True)
    (folder / "evaluator").mkdir()
    (folder / "task.toml").write_text(toml)
    (folder / "seed" / "program.py").write_text(program)
    (folder / "evaluator" / "evaluate.py").write_text(evaluate)
    return folder


@cache
def no_docker() -> str:
    """Why no Docker daemon can be used here; empty when one can."""
    from evogit.sandbox.docker.daemon import connect

    try:
        connect().close()
    except SandboxError as error:
        return str(error)
    return ""


def pytest_configure(config: pytest.Config) -> None:
    """Let what tests start hear Ctrl-C: a shell lets its background jobs ignore it, and their children inherit that.

    Hypothesis must neither measure time nor try other examples in each run.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    settings.register_profile("repeatable", deadline=None, derandomize=True)
    settings.load_profile("repeatable")
    compile_once()
    gc.set_threshold(50_000, 20, 20)
    if config.option.basetemp is None and "TMPDIR" not in os.environ and roomy(MEMORY):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One for each core, and two more: tests wait, for sandboxes, clocks, models and processes."""
    return 2 + (os.cpu_count() or 1)


def compile_once() -> None:
    """Keep the bytecode of EvoGit and the tests, whatever the environment says: many processes import it."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False


def roomy(folder: Path) -> bool:
    """Whether tests can have their folders there: Git waits for no disk then."""
    return os.access(folder, os.W_OK | os.X_OK) and shutil.disk_usage(folder).free >= ROOM


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage among the modules and thousands of tests, neither now nor later: there is none."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes long, so that no worker waits for the last test of another one."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None and item.get_closest_marker("docker") is None)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Fail tests that need a Docker daemon where there is none; only who cannot start one may skip them.

    Others find none, wherever they run: `auto` is bubblewrap for them.
    """
    os.environ["DOCKER_HOST"] = DAEMON if item.get_closest_marker("docker") else NOWHERE
    if item.get_closest_marker("docker") and no_docker():
        if os.geteuid() == 0:
            pytest.fail(f"{no_docker()}; scripts/with-docker starts one for a command", pytrace=False)
        pytest.skip(no_docker())


Once = Callable[[str, Callable[[Path], None]], Path]
MakeTask = Callable[..., Task]


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Once:
    """Has a folder filled once, by a function that is given it, whichever workers of this run ask for it."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", f"{os.getpid()}")
    shared = tmp_path_factory.getbasetemp().parent

    def make(name: str, fill: Callable[[Path], None]) -> Path:
        folder, filled = shared / f"{name}-{run}", shared / f"{name}-{run}.done"
        with (shared / f"{name}-{run}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not filled.exists():
                folder.mkdir()
                fill(folder)
                filled.touch()
        return folder

    return make


@pytest.fixture(scope="session")
def own_made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A person's repository that tests copy, since making one takes many git commands."""
    return Own.make(tmp_path_factory.mktemp("own") / "own").folder


@pytest.fixture
def own(own_made: Path, tmp_path: Path) -> Own:
    """A person's repository with a run whose seed is `main`."""
    shutil.copytree(own_made, tmp_path / "own", ignore=shutil.ignore_patterns("*.sample"))
    return Own(tmp_path / "own")


@pytest.fixture
def tiny(tmp_path: Path) -> MakeTask:
    """Makes tiny tasks; keywords replace its evaluator, seed program or task.toml."""

    def make(name: str = "tiny", **parts: str) -> Task:
        return load_task(write_task(tmp_path / "tasks" / name, **parts))

    return make


@pytest.fixture
def task(tiny: MakeTask) -> Task:
    return tiny()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a test's one repository is, or will be."""
    return tmp_path / "r"


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache that no other test uses: layers, locks and places to take turns."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
