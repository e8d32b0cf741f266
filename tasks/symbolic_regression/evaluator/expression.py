"""Expressions in the variables x0, x1, ...: read with Python's parser, and never executed by it."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

LONGEST = 4000
"""Characters of an expression."""
MOST_PARTS = 120
"""Variables, numbers, operators, and names and calls of functions: an expression with more would be a table."""

FUNCTIONS = {"sin": math.sin, "cos": math.cos, "exp": math.exp, "log": math.log, "sqrt": math.sqrt, "abs": math.fabs}
OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: math.pow,  # of floats alone: neither complex nor endless
}

Row = Sequence[float]
Value = Callable[[Row], float]


@dataclass(frozen=True)
class Expression:
    """What was read: how many parts it has, and its value in a row."""

    parts: int
    value: Value


def read(text: str, variables: int) -> Expression:
    """The expression that a text says.

    Raises:
        ValueError: when it is none, with the part that is not allowed.
    """
    if len(text) > LONGEST or not text.isascii():
        raise ValueError(f"expected at most {LONGEST} characters of ASCII, got {len(text)}")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(f"not an expression: {error}") from None
    parts = sum(isinstance(node, ast.expr) for node in ast.walk(tree))
    if parts > MOST_PARTS:
        raise ValueError(f"expected at most {MOST_PARTS} parts, got {parts}")
    return Expression(parts, compiled(tree, variables))


def compiled(node: ast.expr, variables: int) -> Value:
    """The value of a part, as a function of the row."""
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return constant(number)
        case ast.Name(id=name) if re.fullmatch(r"x\d", name) and int(name[1]) < variables:
            return operator.itemgetter(int(name[1]))
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=operand):
            inner = compiled(operand, variables)
            return (lambda row: -inner(row)) if isinstance(sign, ast.USub) else inner
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            combine, a, b = OPERATORS[type(op)], compiled(left, variables), compiled(right, variables)
            return lambda row: combine(a(row), b(row))
        case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]) if name in FUNCTIONS:
            function, x = FUNCTIONS[name], compiled(argument, variables)
            return lambda row: function(x(row))
    raise ValueError(f"{ast.unparse(node)[:80]!r} is not allowed")


def constant(number: float) -> Value:
    try:
        value = float(number)
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        raise ValueError("a number is too large")
    return lambda row: value
