"""A task whose evaluator is a function in the caller's own process: nothing stands between candidates and scores."""

from __future__ import annotations

import functools
import hashlib
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from types import CodeType
from typing import Any

from evogit.config import Task
from evogit.core import Direction, Judged, Metric, UsageError, shown
from evogit.library.ask_and_tell import FEEDBACK
from evogit.library.seed import Seed

Metrics = str | Sequence[str] | Mapping[str, Direction]
"""The names of the numbers, the first one ranks; as a mapping, which way is better."""


class FunctionTask(Task, frozen=True, kw_only=True, dict=True):
    """What is evolved by a function: the seed's `files`, and `way`, which identifies the function's code.

    `single` is the path of the only file, which the function is given instead of the folder; empty: the folder.
    """

    files: Mapping[str, tuple[bytes, int]]
    single: str = ""
    way: str

    def __repr__(self) -> str:
        return shown(self, but=("files",))

    @property
    def judged(self) -> Judged:
        """Scores come from beside the candidate's code."""
        return "inside"

    @property
    def told_limits(self) -> None:
        """No sandbox limits a candidate."""
        return None

    @property
    def mending(self) -> str:
        """What a person does whose seed fails."""
        return "fix it, or evaluate="

    def seed_files(self) -> dict[str, tuple[bytes, int]]:
        """The seed as path -> content and Git mode."""
        return dict(self.files)

    def evaluator_files(self) -> dict[str, tuple[bytes, int]]:
        """None: the function is in the caller's process."""
        return {}

    @cached_property
    def evaluator_digest(self) -> str:
        """Identifies the function and what its numbers mean, as far as that can be known: not what it calls."""
        return _hash([self.way, [[each.name, each.direction, each.primary] for each in self.metrics]])

    @cached_property
    def parts(self) -> dict[str, str]:
        """What `digest` covers, each with a short digest of its own."""
        values = {
            "goal": self.goal,
            "editable": self.editable,
            "seed": [(path, *self.files[path]) for path in sorted(self.files)],
            "evaluate": self.evaluator_digest,
        }
        return {name: _hash(value)[:12] for name, value in values.items()}

    @cached_property
    def digest(self) -> str:
        """Identifies the task."""
        return _hash(self.parts)


def function_task(
    seed: Seed,
    evaluate: Callable[..., object] | str,
    *,
    metrics: Metrics,
    goal: str,
    editable: Sequence[str],
    repeats: int,
) -> FunctionTask:
    """The task of a seed and a function, or of what else evaluates, by its name.

    Raises:
        UsageError: there is no metric, a direction is none, or nothing may be changed.
    """
    if repeats < 0:
        raise UsageError(f"expected repeats= of 0 or more, got {repeats}")
    task = FunctionTask(
        name=seed.name,
        folder=seed.folder,
        goal=goal or _goal(metrics_of(metrics)[0], evaluate),
        editable=tuple(editable) or ((seed.single,) if seed.single else ("**",)),
        metrics=metrics_of(metrics),
        evaluator=seed.folder / "evaluate.py",
        repeats=repeats,
        seed=seed.folder,
        files=seed.files,
        single=seed.single,
        way=way_of(evaluate) if callable(evaluate) else evaluate,
    )
    if not any(map(task.is_editable, seed.files)):
        raise UsageError(
            f"expected editable= to match a file of the seed ({', '.join(sorted(seed.files)[:3])}), got "
            f"{', '.join(task.editable)}"
        )
    return task


def metrics_of(given: Metrics) -> tuple[Metric, ...]:
    """The metrics, the first one primary. Raises UsageError if there is none, or a direction is none."""
    names: Any = {given: "maximize"} if isinstance(given, str) else given
    if not isinstance(names, Mapping):
        names = dict.fromkeys(names, "maximize") if isinstance(names, Sequence) else {}
    odd = []
    for name, way in names.items():
        is_name = isinstance(name, str) and name.strip() == name != FEEDBACK and name.isprintable()
        is_name = is_name and name.rpartition(":")[2] not in ("maximize", "minimize", "max", "min")
        if not is_name or not 0 < len(name) <= 60 or way not in ("maximize", "minimize"):
            odd.append(f"{name!r}: {way!r}")
    if odd or not names:
        raise UsageError(
            'expected metrics as a name, names, or a dict such as {"seconds": "minimize", "accuracy": "maximize"}, of '
            f"which the first ranks; got {', '.join(odd) or repr(given)}"
        )
    ways: Mapping[str, Direction] = names
    return tuple(Metric(name=name, direction=way, primary=not at) for at, (name, way) in enumerate(ways.items()))


def _goal(metric: Metric, evaluate: object) -> str:
    said = inspect.getdoc(evaluate) if inspect.isroutine(evaluate) else None
    return f"{metric.direction.capitalize()} {metric.name}." + (f"\n\n{said}" if said else "")


# --- what identifies a function -----------------------------------------------------------------------------------


def way_of(evaluate: Callable[..., object]) -> str:
    """A digest of a function's own code; what it calls, and what it has from outside, is not in it."""
    return _hash(_code(evaluate))


def _code(given: object) -> object:
    """The source of a function; its bytecode where there is no source, or more than the function's in its lines."""
    if isinstance(given, functools.partial):
        return [_code(given.func), [_plain(each) for each in given.args], _values(given.keywords)]
    found = inspect.unwrap(given) if callable(given) else given
    if inspect.ismethod(found):
        found = found.__func__
    if not inspect.isfunction(found):  # an instance with __call__, or something built in
        call = getattr(type(found), "__call__")  # noqa: B004, B009
        return _code(call) if inspect.isfunction(call) else _kind(found)
    if found.__name__ != "<lambda>":
        try:
            return textwrap.dedent(inspect.getsource(found))
        except (OSError, TypeError):
            pass
    defaults = [*map(_plain, found.__defaults__ or ()), *_values(found.__kwdefaults__ or {})]
    return [_bytecode(found.__code__), found.__code__.co_freevars, defaults]


def _values(named: Mapping[str, object]) -> list[object]:
    return [(name, _plain(named[name])) for name in sorted(named)]


def _bytecode(code: CodeType) -> object:
    return [code.co_code.hex(), code.co_names, [_plain(each) for each in code.co_consts]]


def _plain(value: object) -> object:
    """A constant in a form that is the same in each process."""
    if isinstance(value, CodeType):
        return _bytecode(value)
    if isinstance(value, frozenset | tuple | list):
        plain = [repr(_plain(each)) for each in value]
        return sorted(plain) if isinstance(value, frozenset) else plain
    return value if isinstance(value, str | bytes | int | float | complex | None | type(...)) else _kind(value)


def _kind(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _hash(value: object) -> str:
    return hashlib.sha256(repr(value).encode(errors="surrogatepass")).hexdigest()
