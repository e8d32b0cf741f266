"""Real repositories with a small history of known shape, and the real command."""

from __future__ import annotations

import contextlib
import gc
import importlib
import inspect
import json
import os
import pkgutil
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import pygit2
import pytest

from evogit.cli import commands, main
from evogit.core import Metric, Status
from evogit.testing import RecordedRun
from evogit.trust import Trust

EVOGIT = Path(sys.executable).with_name("evogit")


class Story(RecordedRun):
    """A run whose candidates are one file each."""

    def __init__(self, folder: Path, run: str = "toy", direction: str = "maximize") -> None:
        metric = Metric(name="score", direction=direction, primary=True, best_known=3.0)  # type: ignore[arg-type]
        super().__init__(folder, run, metrics=(metric,), agents=("a1", "a2"))
        self.folder = folder
        self.moves = 0

    def add(
        self,
        value: float | None,
        *parents: str,
        agent: str = "a1",
        title: str = "",
        files: Mapping[str, bytes] | None = None,
        status: Status = "timeout",
        reason: str = "10 s",
        adopt: bool = False,
        holdout: float | None = None,
        made: Mapping[str, bytes] | None = None,
    ) -> str:
        """A candidate that was evaluated to `value`, or failed with `status` when it is None; its id.

        `made` is the evidence of how it was made.
        """
        changes = files or {"main.py": f"VALUE = {self.moves}\n".encode()}
        evidence = (made or {}, {})
        commit = self.add_files(changes, *parents, title=title, agent=agent, evidence=evidence, move=self.moves)
        self.moves += 1
        self.judge(commit, value, status=status, reason=reason)
        if holdout is not None:
            self.judge(commit, holdout, split="holdout")
        if adopt:
            self.adopt(commit, agent)
        return commit

    def judge(
        self, commit: str, value: float | None, split: str = "train", status: Status = "timeout", reason: str = ""
    ) -> None:
        """Evaluate a candidate once more."""
        known = {"split": split, "reason": reason if value is None else ""}
        self.evaluate(
            commit, status if value is None else value, self.journal.keep({"stdout": b"hello\n"}, commit), **known
        )


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


Cli = Callable[..., Done]


def environment(home: Path, **more: str) -> dict[str, str]:
    """Little enough that nothing of this machine changes what is printed; what tests trust is shared with it."""
    trusted = home / ".local" / "state" / "evogit" / "trust"
    if not trusted.is_symlink():
        trusted.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            trusted.symlink_to(Trust.of_user().folder)
    return {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", **more}


@pytest.fixture
def script(tmp_path: Path) -> Cli:
    """Runs the console script `evogit` in a folder, without a terminal."""

    def call(*arguments: str | Path, cwd: Path = tmp_path, **env: str) -> Done:
        done = subprocess.run(
            [EVOGIT, *arguments],
            cwd=cwd,
            env=environment(tmp_path, **env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Done(done.returncode, done.stdout, done.stderr)

    return call


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """The same in a fork of this process, which saves each test the imports: a tenth of the time."""

    def call(*arguments: str | Path, cwd: Path = tmp_path, **env: str) -> Done:
        done = run_forked(arguments, cwd=cwd, env=environment(tmp_path, **env))
        assert "Traceback" not in done.err, done.err
        return done

    return call


def run_forked(arguments: Sequence[str | Path], *, cwd: Path, env: Mapping[str, str]) -> Done:
    """How a command in a fork of this process ended."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        code = Forked(arguments, cwd=cwd, env=env, stdout=out, stderr=err).wait()
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode())
    return Done(code, *texts)


class Forked(subprocess.Popen[str]):
    """The console script as a fork of this process, for tests of all but how an interpreter starts and ends."""

    def __init__(self, arguments: Sequence[str | Path], **options: Any) -> None:
        everywhere: Any = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        super().__init__([EVOGIT, *arguments], text=True, **everywhere | options)

    def _execute_child(self, *given: Any) -> None:
        import_commands()
        if "bench" in self.args:  # type: ignore[operator]
            import_plots()
        known = inspect.signature(subprocess.Popen._execute_child).bind(self, *given).arguments  # type: ignore[attr-defined]
        pipes = {name: known[name] for name in ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")}
        self.pid = os.fork()
        if not self.pid:
            if known["start_new_session"]:
                os.setsid()
            for number, end in enumerate(("p2cread", "c2pwrite", "errwrite")):
                os.dup2(pipes[end], number)
            for end in ("p2cwrite", "c2pread", "errread"):
                if pipes[end] >= 0:
                    os.close(pipes[end])
            become_evogit([str(word) for word in known["args"][1:]], known["cwd"], known["env"])
        self._child_created = True
        self._close_pipe_fds(*pipes.values())  # type: ignore[attr-defined]


LATER = (
    *("evogit.llm.endpoint", "evogit.llm.gateway.gateway", "evogit.agents.programs.agent", "evogit.config.task_file"),
    *("rich.console", "docker", "encodings.idna", "httpcore2"),
)
"""Modules that take up to half a second of CPU in each process that asks a model."""


@cache
def import_commands() -> None:
    """Import what any command needs, once for all forks, and what they import when they ask models or Docker."""
    for module in pkgutil.iter_modules(commands.__path__, f"{commands.__name__}."):
        importlib.import_module(module.name)
    for name in LATER:
        importlib.import_module(name)


@cache
def import_plots() -> None:
    """Import what pictures are made with, which takes half a second."""
    for name in ("figure", "backends.backend_agg", "backends.backend_svg"):
        importlib.import_module(f"matplotlib.{name}")


def become_evogit(arguments: list[str], cwd: Path, env: Mapping[str, str]) -> NoReturn:
    """What the console script does, in a process that has been forked; does not return."""
    code = 1
    try:
        gc.freeze()
        sys.stdin = open(0, encoding="utf-8")  # noqa: SIM115, PTH123
        sys.stdout = open(1, "w", encoding="utf-8")  # noqa: SIM115, PTH123
        sys.stderr = open(2, "w", buffering=1, encoding="utf-8")  # noqa: SIM115, PTH123
        os.environ.clear()
        os.environ.update(env)
        pygit2.settings.search_path[pygit2.enums.ConfigLevel.GLOBAL] = env.get("HOME", "")  # found when it was imported
        os.chdir(cwd)
        sys.argv = ["evogit", *arguments]
        main()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 0
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


@dataclass(frozen=True)
class Small:
    """Ids of the candidates of the small history."""

    folder: Path
    seed: str
    step: str
    fail: str
    left: str
    right: str
    dead: str
    merge: str


@pytest.fixture
def small(small_made: Small, tmp_path: Path) -> Small:
    """A copy of the small history, since writing one takes longer."""
    shutil.copytree(small_made.folder, tmp_path / "repo", ignore=shutil.ignore_patterns("*.sample"))
    return replace(small_made, folder=tmp_path / "repo")


@pytest.fixture(scope="session")
def small_made(tmp_path_factory: pytest.TempPathFactory) -> Small:
    r"""Two agents, seven candidates.

    seed 1.0 --- step 1.5 --- left 1.7 --- merge 2.0 (best)
      \             \ \----- right 1.6 ---/
       fail          dead 1.2
    """
    story = Story(tmp_path_factory.mktemp("small") / "repo")
    seed = story.add(1.0, title="Seed", holdout=1.1)
    step = story.add(1.5, seed, title="replace greedy start", adopt=True)
    fail = story.add(None, seed, agent="a2", title="too slow")
    left = story.add(1.7, step, title="corner circles first", adopt=True)
    right = story.add(1.6, step, agent="a2", title="adaptive step size", adopt=True)
    dead = story.add(1.2, step, agent="a2", title="a dead end")
    merge = story.add(2.0, left, right, title="merge: start and step size", adopt=True, holdout=1.9)
    story.stop()
    return Small(story.folder, seed, step, fail, left, right, dead, merge)
