"""Judges candidates for `rent.py` in its own process: no sandbox, and no process that has to be waited for."""

from __future__ import annotations

import importlib
import signal
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from statistics import fmean
from types import CodeType, SimpleNamespace
from typing import Any

import msgspec

from evogit import Case, Invalid
from evogit.config import Task
from evogit.core import Evaluation, Evidence
from evogit.testing import Asked

WALL_S = 2.0
"""Time limit of one evaluation."""


class Files(MetaPathFinder, InspectLoader):
    """Imports modules from texts."""

    texts: Mapping[str, str] = {}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Find a module at the top."""
        return ModuleSpec(name, self) if f"{name}.py" in self.texts else None

    def get_source(self, fullname: str) -> str:
        """Return its text."""
        return self.texts[f"{fullname}.py"]

    def get_code(self, fullname: str) -> CodeType:
        """Return its code."""
        return compile(self.get_source(fullname), fullname, "exec")

    def put(self, texts: Mapping[str, str]) -> None:
        """Forget the modules that there were, and have others."""
        for path in self.texts:
            sys.modules.pop(path.removesuffix(".py"), None)
        self.texts = texts


class Direct:
    """The `program` of an evaluator: calls functions of the candidate."""

    def call(self, target: str, args: Any = (), *, kwargs: Any = None, returns: Any = Any) -> Any:
        """Call a function and check its result."""
        module, _, path = target.partition(":")
        function = reduce(getattr, path.split("."), importlib.import_module(module))
        args, kwargs = msgspec.json.decode(msgspec.json.encode([args, kwargs or {}]))
        value = msgspec.json.decode(msgspec.json.encode(function(*args, **kwargs)), type=returns)
        return SimpleNamespace(value=value, usage=SimpleNamespace(cpu=0.0, wall=0.0))

    def stream(self, target: str, items: Any, *, returns: Any) -> Iterator[Any]:
        """Call a function with one item after the other."""
        return (self.call(target, [item], returns=returns) for item in items)


def cases_of(place: Path) -> Callable[[], Iterator[Case]]:
    """Return the function that yields the cases of the program that can be imported.

    `place` has `evaluate.py` of a task, or `score.py` of a landscape of `benchmarks/peers`.
    """
    sys.path.insert(0, str(place))
    if (place / "evaluate.py").exists():
        module = importlib.import_module("evaluate")
        return lambda: module.evaluate(Direct(), "train")
    score = importlib.import_module("score")

    def cases() -> Iterator[Case]:
        parts = score.parts(vars(importlib.import_module("program")))
        weakest = min(parts, key=parts.__getitem__)
        message = f"weakest part: {weakest} {parts[weakest]:.4f} ({', '.join(score.INVOLVED[weakest])})"
        return (Case(part, feedback=message, score=value) for part, value in parts.items())

    return cases


class Judge:
    """Evaluates the candidates of one task; `cpu` are the seconds that it took."""

    def __init__(self, task: Task, place: Path) -> None:
        metrics = tomllib.loads((task.folder / "task.toml").read_text())["metrics"]
        self._sums = {name: about.get("aggregate", "mean") == "sum" for name, about in metrics.items()}
        seed = task.folder / "seed"
        self._seed = {str(file.relative_to(seed)): file.read_text() for file in seed.rglob("*.py")}
        self._files = Files()
        sys.meta_path.insert(0, self._files)
        self._cases = cases_of(place)
        self.cpu = 0.0
        signal.signal(signal.SIGALRM, _interrupt)

    def __call__(self, asked: Asked) -> tuple[Evaluation, Evidence]:
        """Evaluate what is asked."""
        began = time.process_time()
        self._files.put({**self._seed, **{path: text.decode() for path, text in asked.changed.items()}})
        about: dict[str, Any] = {"split": asked.split, "repeat": asked.repeat, "judged": "outside"}
        about["key"] = f"{asked.tree} {asked.split} {asked.repeat}"
        try:
            signal.setitimer(signal.ITIMER_REAL, WALL_S)
            found = list(self._cases())
            cases = {case.name: {name: float(value) for name, value in case.metrics.items()} for case in found}
            if not all(abs(value) < 1e300 for case in cases.values() for value in case.values()):
                raise Invalid("a score is not a finite number")
        except BaseException as error:  # noqa: BLE001  a candidate may raise anything
            return Evaluation(status="crashed", reason=f"{type(error).__name__}: {error}"[:300], **about), Evidence()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            self.cpu += time.process_time() - began
        columns = {name: [case[name] for case in cases.values()] for name in self._sums}
        metrics = {name: sum(column) if self._sums[name] else fmean(column) for name, column in columns.items()}
        feedback = {"all": found[0].feedback}
        return Evaluation(status="ok", metrics=metrics, cases=cases, **about), Evidence(feedback=feedback)


def _interrupt(*_: object) -> None:
    raise TimeoutError(f"took more than {WALL_S} s")
