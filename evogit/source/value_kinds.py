"""Guesses what the names of a module stand for, so that edits rarely put a list where a number belongs."""

from __future__ import annotations

import ast
import contextlib
import functools
from collections.abc import Mapping
from typing import Literal

from evogit.source.definitions import piece_syntax
from evogit.source.pieces import REMEMBERED, split

NameKind = Literal["number", "whole", "many"]
"""A number; one that is used as a count or an index; something with parts or methods."""

_NUMBERS = ("abs", "float", "fsum", "round", "sqrt", "sin", "cos", "exp", "log", "dist")
_WHOLES = ("int", "len")
_TAKE_MANY = ("len", "sum", "sorted", "enumerate", "zip", "set", "list", "tuple", "any", "all", "reversed")
_DISPLAYS = (ast.List, ast.Tuple, ast.Set, ast.Dict, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_RANK = {"number": 1, "whole": 2, "many": 3}


@functools.lru_cache(maxsize=64)
def kinds(content: bytes) -> Mapping[tuple[str, str], NameKind]:
    """(Qualified function or "", name) -> what the name seems to stand for, by how it is bound and used there.

    Where uses disagree, the kind that fewer edits fit counts. Names without a hint are left out.
    """
    found: dict[tuple[str, str], NameKind] = {}
    for text in split("module.py", content).values():
        for key, kind in _guessed(text).items():
            found[key] = max(kind, found.get(key, kind), key=_RANK.__getitem__)
    return found


@functools.lru_cache(maxsize=REMEMBERED)
def _guessed(text: str) -> Mapping[tuple[str, str], NameKind]:
    """The same of one piece of a module."""
    guesses = _Guesses()
    with contextlib.suppress(RecursionError):  # what was found so far will do
        guesses.visit(piece_syntax(text))
    return guesses.found


def fits(content: bytes, where: str, old: str, new: str) -> bool:
    """Whether one name may well stand where another one is read, as far as anyone can guess."""
    known = kinds(content)
    mine, other = (known.get((where, name), known.get(("", name))) for name in (old, new))
    if mine is None or other is None:
        return True
    return (mine == "many") == (other == "many") and (mine != "whole" or other == "whole")


def is_number(content: bytes, where: str, name: str) -> bool:
    """Whether one can reckon with what a name stands for, as far as anyone can guess."""
    known = kinds(content)
    return known.get((where, name), known.get(("", name))) != "many"


class _Guesses(ast.NodeVisitor):
    """Notes a hint wherever the syntax gives one."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, str], NameKind] = {}
        self._where = ""

    def _hint(self, node: ast.AST | None, kind: NameKind | None) -> None:
        if isinstance(node, ast.Name) and kind:
            key = self._where, node.id
            self.found[key] = max(kind, self.found.get(key, kind), key=_RANK.__getitem__)

    def _enter(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        outer = self._where
        self._where = f"{outer}.{node.name}" if outer else node.name
        self.generic_visit(node)
        self._where = outer

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _enter

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self._hint(target, _kind(node.value))
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._hint(node.target, _kind(node.value))
        self.generic_visit(node)

    def visit_For(self, node: ast.For | ast.comprehension) -> None:
        self._hint(node.iter, "many")
        if isinstance(node.iter, ast.Call) and _called(node.iter) == "range":
            self._hint(node.target, "whole")
        self.generic_visit(node)

    visit_comprehension = visit_For

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self._hint(node.value, "many")
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self._hint(node.value, "many")
        index = node.slice
        for each in (index.lower, index.upper, index.step) if isinstance(index, ast.Slice) else (index,):
            self._hint(each, "whole")
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = _called(node)
        for each in node.args:
            if name == "range":
                self._hint(each, "whole")
            elif name in _TAKE_MANY:
                self._hint(each, "many")
            elif name in _NUMBERS:
                self._hint(each, "number")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        count = isinstance(node.op, ast.Mult) and _kind(node.left) == "many"
        for each in (node.left, node.right):
            self._hint(each, "whole" if count else "number")
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        for operator, right in zip(node.ops, node.comparators, strict=True):
            if isinstance(operator, ast.In | ast.NotIn):
                self._hint(right, "many")
            elif not isinstance(operator, ast.Is | ast.IsNot):
                self._hint(right, "number")
                self._hint(node.left, "number")
        self.generic_visit(node)


def _called(node: ast.Call) -> str:
    match node.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _kind(node: ast.expr) -> NameKind | None:
    """What an expression surely gives."""
    match node:
        case ast.UnaryOp(operand=operand):
            return _kind(operand)
        case ast.Constant(value=bool()):
            return None
        case ast.Constant(value=int()):
            return "whole"
        case ast.Constant(value=float()):
            return "number"
        case ast.Call():
            name = _called(node)
            return "whole" if name in _WHOLES else "number" if name in _NUMBERS else None
    return "many" if isinstance(node, _DISPLAYS) else None
