"""A file that stands in for a candidate: evaluators of other systems import it, and its functions run in the sandbox.

So an evaluator that calls functions of a program with data, and computes a score from what they return, runs outside
of the candidate's reach as it is. No code of the candidate is in the file. An evaluator may import it in a process that
it starts, too: calls from there go through a socket.
"""

from __future__ import annotations

import ast
import base64
import importlib
import json
import os
import secrets
import socket
import socketserver
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evogit.evaluation.program import CandidateFailedError, Invalid, Program

TEXT = '''"""Stands in for a program, whose functions run in its sandbox."""

from evogit.evaluation.stand_in import function


def __getattr__(name):
    return function({token!r}, {place!r}, name)
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
    process: int = field(default_factory=os.getpid)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def call(self, name: str, args: Any, kwargs: Any) -> Any:
        """Call a function. Raises CandidateFailedError as `program.call` does, ValueError if arguments are not JSON."""
        try:
            with self.lock:
                value = self.program.call(f"{self.module}:{name}", args, kwargs).value
        except (CandidateFailedError, ValueError, TypeError) as failure:
            self.failure = failure
            raise
        self.succeeded = True
        return tuple(value) if isinstance(value, list) and self.functions[name] else value


_LIVES: dict[str, _Life] = {}
"""Token of a file -> whom it stands in for."""


@contextmanager
def stand_in(program: Program, file: str) -> Iterator[str]:
    """Yield the path of a file that has the functions of the candidate's module `file`, as long as the block lasts.

    Raises:
        CandidateFailedError: there is no such file, it is no Python, or no call succeeded (a score of 0 may hide that).
        ValueError: all calls failed because their arguments are no JSON.
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
        with tempfile.TemporaryDirectory(prefix="evogit-stand-in-") as folder, _served(life, f"{folder}/calls"):
            place = Path(folder) / Path(file).name
            place.write_text(TEXT.format(token=token, place=f"{folder}/calls"), encoding="utf-8")
            try:
                yield str(place)
            finally:
                for name, module in list(sys.modules.items()):  # the next candidate's file has the same name
                    if getattr(module, "__dict__", {}).get("__file__") == str(place):
                        del sys.modules[name]
        if not life.succeeded:
            raise life.failure or Invalid(f"the evaluator called no function of {file}")
    finally:
        del _LIVES[token]


def function(token: str, place: str, name: str) -> Callable[..., Any]:
    """Return a function that runs in the candidate's sandbox, through the socket `place`. Raises AttributeError."""
    life = _LIVES.get(token)
    here = life is not None and life.process == os.getpid()
    names = life.functions if life else _asked(place, {})["functions"]
    if name not in names:
        raise AttributeError(f"the program defines no function {name}")

    def called(*args: Any, **kwargs: Any) -> Any:
        if life is not None and here:
            return life.call(name, args, kwargs)
        said = _asked(place, {"name": name, "args": _encoded(args), "kwargs": _encoded(kwargs)})
        if "error" in said:
            raise RuntimeError(said["error"])
        return _decoded(said["value"])

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


# --- from another process -----------------------------------------------------------------------------------------


class _Server(socketserver.ThreadingUnixStreamServer):
    """Answers calls from processes that the evaluator starts, one line of JSON each."""

    daemon_threads = True

    def __init__(self, place: str, life: _Life) -> None:
        self.life = life
        super().__init__(place, _Handler)


class _Handler(socketserver.StreamRequestHandler):
    """One call."""

    server: _Server

    def handle(self) -> None:
        """Answer it."""
        asked, life = json.loads(self.rfile.readline()), self.server.life
        said: dict[str, Any] = {"functions": list(life.functions)}
        if "name" in asked:
            try:
                value = life.call(asked["name"], _decoded(asked["args"]), _decoded(asked["kwargs"]))
                said = {"value": _encoded(value)}
            except (CandidateFailedError, ValueError, TypeError) as failure:
                said = {"error": str(failure)}
        self.wfile.write(json.dumps(said).encode() + b"\n")


@contextmanager
def _served(life: _Life, place: str) -> Iterator[None]:
    with _Server(place, life) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


def _asked(place: str, request: Mapping[str, Any]) -> Any:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(place)
        connection.sendall(json.dumps(request).encode() + b"\n")
        with connection.makefile() as reply:
            return json.loads(reply.readline())


def _encoded(value: Any) -> Any:
    if hasattr(value, "dtype") and hasattr(value, "tobytes"):
        data = base64.b64encode(value.tobytes()).decode()
        return {"array": [value.dtype.str, list(value.shape), data]}
    if isinstance(value, tuple):
        return {"tuple": [_encoded(each) for each in value]}
    if isinstance(value, list):
        return [_encoded(each) for each in value]
    if isinstance(value, dict):
        return {"dict": [[key, _encoded(each)] for key, each in value.items()]}
    return value


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return [_decoded(each) for each in value]
    if not isinstance(value, dict):
        return value
    ((kind, parts),) = value.items()
    if kind == "tuple":
        return tuple(_decoded(each) for each in parts)
    if kind == "dict":
        return {key: _decoded(each) for key, each in parts}
    dtype, shape, data = parts
    numpy = importlib.import_module("numpy")  # whoever sent an array has it
    return numpy.frombuffer(base64.b64decode(data), dtype=dtype).reshape(shape).copy()
