"""A file that stands in for a candidate: evaluators of other systems import it, and its functions run in the sandbox.

So an evaluator that calls functions of a program with data, and computes a score from what they return, runs outside
of the candidate's reach as it is. No code of the candidate is in the file.
"""

from __future__ import annotations

import ast
import secrets
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evogit.evaluation.program import CandidateFailedError, Invalid, Program

TEXT = '''"""Stands in for a program, whose functions run in its sandbox."""

from evogit.evaluation.stand_in import function


def __getattr__(name):
    return function({token!r}, name)
'''


@dataclass
class _Life:
    """Whom a file stands in for, and how calls of it went: whether one succeeded, and the last failure."""

    program: Program
    module: str
    functions: Mapping[str, bool]
    """Name -> whether it returns tuples, as far as its text tells: they cross as lists."""
    succeeded: bool = False
    failure: Exception | None = None


_LIVES: dict[str, _Life] = {}
"""Token of a file -> whom it stands in for."""


@contextmanager
def stand_in(program: Program, file: str) -> Iterator[str]:
    """The path of a file that has the functions of the candidate's module `file`, as long as the block lasts.

    Values cross as they do in `program.call`: as JSON, and arrays of numpy.

    Raises:
        CandidateFailedError: the candidate has no such file, it is no Python, or all calls of it failed, which
            evaluators tend to hide behind a score of 0.
        ValueError: all calls failed as what they were given is no JSON.
    """
    ran = program.run(["cat", file])
    if ran.code != 0:
        raise Invalid(f"expected a file {file}", ran.stderr)
    try:
        functions = dict(_functions(ast.parse(ran.stdout)))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Invalid(f"{file} is not Python: {error}") from None
    token = secrets.token_hex(16)
    life = _LIVES[token] = _Life(program, file.removesuffix(".py").replace("/", "."), functions)
    try:
        with tempfile.TemporaryDirectory(prefix="evogit-stand-in-") as folder:
            place = Path(folder) / Path(file).name
            place.write_text(TEXT.format(token=token), encoding="utf-8")
            yield str(place)
        if life.failure and not life.succeeded:
            raise life.failure
    finally:
        del _LIVES[token]


def function(token: str, name: str) -> Callable[..., Any]:
    """A function of the candidate's that runs in its sandbox.

    Raises:
        AttributeError: it has none of that name.
    """
    life = _LIVES[token]
    if name not in life.functions:
        raise AttributeError(f"the program defines no function {name}")

    def called(*args: Any, **kwargs: Any) -> Any:
        try:
            value = life.program.call(f"{life.module}:{name}", args, kwargs).value
        except (CandidateFailedError, ValueError, TypeError) as failure:
            life.failure = failure
            raise
        life.succeeded = True
        return tuple(value) if isinstance(value, list) and life.functions[name] else value

    called.__name__ = name
    return called


def _functions(node: ast.AST) -> Iterator[tuple[str, bool]]:
    """The functions that a module defines, also below an `if` or `try`, and whether each one returns tuples."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef):
            said = child.returns is not None and "tuple" in ast.unparse(child.returns).lower()
            returned = (each.value for each in ast.walk(child) if isinstance(each, ast.Return))
            yield child.name, said or any(isinstance(value, ast.Tuple) for value in returned)
        elif isinstance(child, ast.If | ast.Try | ast.ExceptHandler | ast.With):
            yield from _functions(child)
