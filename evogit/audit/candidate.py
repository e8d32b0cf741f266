"""Candidates that attack: the seed with a few more lines, written so that a reader sees at once what they do."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

_FUTURE = re.compile(rb"^from __future__ import .*\n", re.MULTILINE)


def template(name: str) -> str:
    """Return the text of a template of this room."""
    return (Path(__file__).parent / "templates" / name).read_text(encoding="utf-8")


EACH = template("each.py.txt")
"""A function that cheats may call; it is added to those that do."""

PRINTED = template("printed.py.txt")


class AttackCandidate(Struct, frozen=True):
    """The files in which a candidate differs from the seed: path -> content."""

    files: Mapping[str, bytes]

    def diff(self, seed: Mapping[str, bytes]) -> str:
        """Return a patch to the seed's files."""
        parts: list[str] = []
        for path, content in sorted(self.files.items()):
            before, after = _lines(seed.get(path, b"")), _lines(content)
            old = f"a/{path}" if path in seed else "/dev/null"
            parts += difflib.unified_diff(before, after, old, f"b/{path}")
        return "".join(parts)


SEED = AttackCandidate({})  # the seed itself


def _lines(content: bytes) -> list[str]:
    text = content.decode(errors="replace")
    return [line + "\n" for line in text.split("\n")[: -1 if text.endswith("\n") else None]]


def title(name: str) -> str:
    """Return the comment above the added lines."""
    return f"# --- added by `evogit audit` ({name}) ---\n"


def cheat(body: str) -> str:
    """Return the function that answers in the place of the seed's."""
    code = f"def _cheat(honest, *args, **kwargs):\n    {body}\n"
    return (EACH + "\n\n" if "_each(" in code else "") + code


def above(content: bytes, code: str) -> bytes:
    """Put code before everything that a Python file does."""
    futures = b"".join(_FUTURE.findall(content))
    return futures + code.encode() + b"\n" + _FUTURE.sub(b"", content)


def below(content: bytes, code: str) -> bytes:
    """Put code after everything that a Python file defines."""
    return content.rstrip() + b"\n\n\n" + code.encode()


def wrapped(content: bytes, name: str, functions: Sequence[str], code: str) -> bytes:
    """Call functions of a module (`pack`, `Solver.solve`) through `_cheat(honest, *args, **kwargs)`."""
    lines = [title(name) + "import functools", code.strip() + "\n", ""]
    for function in functions:
        if "." in function:  # `partial` objects do not bind `self`
            lines.append(f"{function} = lambda *args, _honest={function}, **kwargs: _cheat(_honest, *args, **kwargs)")
        else:
            lines.append(f"{function} = functools.partial(_cheat, {function})")
    return below(content, "\n".join(lines) + "\n")


def wrapped_all(content: bytes, name: str, code: str) -> bytes:
    """Call every function that a module defines through `_cheat(honest, *args, **kwargs)`.

    A module without functions stays as it is. Code after the last function calls the wrapped ones.
    """
    try:
        body = ast.parse(content).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return content
    functions = [node for node in body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")]
    if not functions:
        return content
    lines = content.splitlines(keepends=True)
    end = functions[-1].end_lineno
    rest = b"".join(lines[end:]).strip()
    added = wrapped(b"".join(lines[:end]), name, [function.name for function in functions], code)
    return added + (b"\n\n" + rest + b"\n" if rest else b"")


def printing(content: bytes, name: str, code: str, out: Sequence[str] = ()) -> bytes:
    """Pass what a script prints, or writes to the files `out`, through `_cheat(honest)`."""
    return above(content, PRINTED.format(title=title(name), cheat=code.strip() + "\n", out=list(out)))
