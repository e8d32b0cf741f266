"""What evaluates for a task: its Python file, imported and checked for what it must define, or its command."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

from msgspec import Struct

from evogit.config import Task
from evogit.config.values import STRENGTH, EvaluationCommand
from evogit.core import ConfigError, Files
from evogit.evaluation.command import CommandEvaluator
from evogit.evaluation.program import Case, Program


class LoadedEvaluator(Struct, frozen=True):
    """A task's evaluator: `evaluate` yields cases, `prepare` (None: nothing to do) is given the seed once.

    `lay` gives a candidate's files as the sandbox gets them, None where they stay as they are.
    """

    evaluate: Callable[..., object]
    prepare: Callable[..., object] | None = None
    lay: Callable[[Files], Files] | None = None


def load_evaluator(task: Task) -> LoadedEvaluator:
    """The task's evaluator.

    Raises:
        ConfigError: when its file does not define what this version expects.
    """
    if task.command:
        evaluator = CommandEvaluator(task, task.command)
        evaluate = _valid(evaluator, task.command) if task.pairwise else evaluator.evaluate
        return LoadedEvaluator(evaluate, evaluator.prepare if task.command.prepare else None, evaluator.lay)
    module = load(task)
    return LoadedEvaluator(module.evaluate, getattr(module, "prepare", None))


def _valid(evaluator: CommandEvaluator, command: EvaluationCommand) -> Callable[..., object]:
    """Every candidate that the command does not fail on is worth the same, until it is compared with others."""

    def evaluate(program: Program, split: str) -> Iterator[Case]:
        for case in evaluator.evaluate(program, split) if command.text else [Case("valid")]:
            yield Case(case.name, case.feedback, **{STRENGTH: 0.0})

    return evaluate


def load(task: Task) -> ModuleType:
    """The module that defines `evaluate`; those beside it can be imported by it.

    Raises:
        ConfigError: when it does not.
    """
    sys.dont_write_bytecode = True  # the folder is the user's
    sys.path.insert(0, str(task.evaluator.parent))
    module = _import(task.evaluator)
    if not callable(getattr(module, "evaluate", None)):
        raise ConfigError(f"{task.evaluator}: there is no function evaluate(program, split); define it")
    return module


def _import(file: Path) -> ModuleType:
    name = "evaluator_of_the_task"
    loader = SourceFileLoader(name, str(file))
    spec = spec_from_loader(name, loader)
    assert spec  # a loader gives a spec
    module = sys.modules[name] = module_from_spec(spec)  # dataclasses look their module up
    loader.exec_module(module)
    return module


def wanted(evaluate: Callable[..., object]) -> set[str]:
    """Which of the parameters `seed` and `rng` the function takes, after `program` and `split`.

    Raises:
        ConfigError: when it takes something else.
    """
    first, extra = (names := list(inspect.signature(evaluate).parameters))[:2], set(names[2:])
    if first != ["program", "split"] or extra - {"seed", "rng"}:
        raise ConfigError(f"expected evaluate(program, split) with seed and rng if needed, got ({', '.join(names)})")
    return extra
