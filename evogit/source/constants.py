"""The numbers that a module names: the floats of the constants at its top, and where they stand."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from evogit.source.definitions import LINE, piece_syntax
from evogit.source.pieces import REMEMBERED as PIECES
from evogit.source.pieces import WHOLE, digest, is_python, split


class Constant(NamedTuple):
    """One of the numbers that are assigned to a name: the module's path, the name, which of its numbers it is."""

    path: str
    name: str
    place: int


class Number(NamedTuple):
    """A float as it is written: bytes `start` to `end` of the module, a sign included."""

    start: int
    end: int
    value: float


class Named(NamedTuple):
    """The named numbers of a module; `rest` is a digest of all else, empty where the module was not looked into."""

    numbers: Mapping[Constant, Number]
    rest: str


NOTHING = Named({}, "")  # of a file that is not Python, is large or cannot be parsed
REMEMBERED = 512  # modules that are not parsed again: most agents change one that was looked into before


@lru_cache(maxsize=REMEMBERED)
def named(path: str, content: bytes) -> Named:
    """The floats in what is assigned to a name at the top of a module; of a name that comes twice, those of the last.

    Integers are left out, as they are counts, sizes and choices more often than quantities with a slope.
    """
    try:
        content.decode()
    except UnicodeDecodeError:
        return NOTHING
    pieces = split(path, content) if is_python(path) else {}
    if not pieces or WHOLE in pieces:
        return NOTHING
    start, numbers = 0, dict[Constant, Number]()
    for text in pieces.values():
        for name, place, number in _numbers(text):
            numbers[Constant(path, name, place)] = Number(start + number.start, start + number.end, number.value)
        start += len(text.encode())
    rest = content
    for number in sorted(numbers.values(), reverse=True):
        rest = rest[: number.start] + b"." + rest[number.end :]
    return Named(numbers, digest(rest))


@lru_cache(maxsize=PIECES)
def _numbers(text: str) -> Sequence[tuple[str, int, Number]]:
    """The named numbers of a piece: name, which of its numbers it is, and where it stands in the piece."""
    content = text.encode()
    starts = [0, *accumulate(len(line.encode()) for line in LINE.findall(text))]
    return [
        (name, place, number)
        for name, value in _assigned(piece_syntax(text).body)
        for place, node in enumerate(_floats(value))
        if (number := _number(content, starts, node))
    ]


def _assigned(body: Sequence[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    for statement in body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                yield name, value


def _floats(node: ast.expr) -> Iterator[ast.expr]:
    """The float literals in an expression, as they follow each other, each with its sign."""
    match node:
        case ast.Constant(value=float()) | ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=float())):
            yield node
        case _:
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.expr):
                    yield from _floats(child)


def _number(content: bytes, starts: Sequence[int], node: ast.expr) -> Number | None:
    """Where a literal stands; None where its place is not told in bytes of this text, or its sign stands apart."""
    start = starts[node.lineno - 1] + node.col_offset
    end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
    try:
        return Number(start, end, float(content[start:end]))
    except ValueError:
        return None
