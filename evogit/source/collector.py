"""Walks the syntax tree of a module and notes its parts."""

from __future__ import annotations

import ast
import codecs
import functools
import re
from collections.abc import Sequence
from typing import NamedTuple

from evogit.source import MAX_SOURCE_BYTES, Block, Definition, DefinitionKind, Kind, Role, Site, Source, Statement
from evogit.source.definitions import compiles, syntax

DEEPEST = 120  # nodes inside one another that are walked; Python's own limit would depend on who asks

Function = ast.FunctionDef | ast.AsyncFunctionDef
Loop = ast.For | ast.AsyncFor

_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow)
_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.BinOp)

_LINE_END = re.compile(rb"\r\n|\r|\n|\Z")
_TRIVIA = rb"(?:[\s\\]|#[^\r\n]*)*"
_OPERATOR = re.compile(
    rb"((?:%(gap)s\))*)%(gap)s(not\b%(gap)sin\b|is\b%(gap)snot\b|[a-z]+|[^\w\s\\#()]+)(%(gap)s\()?" % {b"gap": _TRIVIA}
)
"""What stands between two operands: the ends of parentheses, an operator, and whether parentheses begin."""

_AS = re.compile(rb"(?:%(gap)s\))*%(gap)sas\b%(gap)s\w+" % {b"gap": _TRIVIA})
_INDENT = re.compile(rb"(?<!\\)(?<!\\\r)[\r\n][ \t\f]*\Z")
_SEMICOLON = re.compile(rb"[\s\\]*;(?:[ \t\f]|\\\r?\n?)*")
_WORD = re.compile(rb"[\w\x80-\xff]+")
_STRING = re.compile(
    r"""(?s)[A-Za-z]{0,2}(?:'''(?:(?!''')(?:[^\\]|\\.))*'''|\"""(?:(?!\""")(?:[^\\]|\\.))*\"""|"""
    r"""'(?:[^'\\\r\n]|\\.)*'|"(?:[^"\\\r\n]|\\.)*")"""
)
"""A string that is not put together from several."""


@functools.lru_cache(maxsize=64)
def parse(content: bytes) -> Source | None:
    """Parse a module; None if it is large, not UTF-8, not Python, or nested too deeply.

    Cached by content, because parsing costs ten times more than an edit.
    """
    if len(content) > MAX_SOURCE_BYTES or not compiles(content):
        return None
    try:
        collector = _Collector(content)
        collector.walk(*syntax(content.decode("utf-8-sig")).body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return collector.source()


class _Gap(NamedTuple):
    """The text between two operands: where the left one ends with its parentheses, and the operator's span."""

    end: int
    operator: tuple[int, int]
    opens: bool  # whether the right operand is in parentheses


class _Collector:
    """Walks a tree once and notes what can be edited. A `_see_X` method replaces the default, which is to go deeper."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        first = len(codecs.BOM_UTF8) if content.startswith(codecs.BOM_UTF8) else 0  # which the parser does not count
        self._lines = [first, *(match.end() for match in _LINE_END.finditer(content))]
        self._definitions: list[Definition] = []
        self._sites: dict[Kind, list[Site]] = {}
        self._blocks: list[Block] = []
        self._bindings: dict[str, list[tuple[str, int]]] = {}
        self._modules: set[str] = set()
        self._operands: set[ast.expr] = set()
        self._where = ""
        self._depth = 0  # of functions
        self._nesting = 0
        self._in_index = False
        self._label = ""

    def source(self) -> Source:
        return Source(
            content=self._content,
            definitions=tuple(self._definitions),
            sites={kind: tuple(sites) for kind, sites in self._sites.items()},
            blocks=tuple(self._blocks),
            bindings={where: tuple(names) for where, names in self._bindings.items()},
        )

    def walk(self, *nodes: ast.AST | None) -> None:
        self._nesting += 1
        if self._nesting > DEEPEST:
            raise RecursionError
        for node in nodes:
            if node is None:
                continue
            see = getattr(self, f"_see_{type(node).__name__}", None)
            if see is not None:
                see(node)
            else:
                self.walk(*ast.iter_child_nodes(node))
        self._nesting -= 1

    # --- helpers

    def _start(self, node: ast.stmt | ast.expr) -> int:
        return self._lines[node.lineno - 1] + node.col_offset

    def _end(self, node: ast.stmt | ast.expr) -> int:
        return self._lines[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)

    def _range(self, node: ast.stmt | ast.expr) -> tuple[int, int]:
        return self._start(node), self._end(node)

    def _slice(self, start: int, end: int) -> str:
        return self._content[start:end].decode()

    def _text(self, node: ast.stmt | ast.expr) -> str:
        return self._slice(*self._range(node))

    def _operand(self, node: ast.expr, in_parentheses: bool) -> str:
        return f"({self._text(node)})" if in_parentheses else self._text(node)

    def _site(self, kind: Kind, start: int, end: int, *, label: str = "", parts: tuple[str, ...] = ()) -> None:
        site = Site(kind, start, end, self._slice(start, end), self._where, label, parts)
        self._sites.setdefault(kind, []).append(site)

    def _gap(self, left: ast.expr, right: ast.expr) -> _Gap:
        found = _OPERATOR.match(self._content, self._end(left), self._start(right))
        if found is None:
            raise ValueError(f"expected an operator after line {left.end_lineno}")
        return _Gap(found.end(1), found.span(2), found[3] is not None)

    def _define(self, name: str, kind: DefinitionKind, node: ast.stmt) -> None:
        start, end = self._range(node)
        qualified = f"{self._where}.{name}" if self._where else name
        local = self._depth > 0
        self._definitions.append(Definition(qualified, kind, start, end, self._content[start:end], local))

    def _bind(self, target: ast.expr, offset: int) -> None:
        if isinstance(target, ast.Name):
            self._bindings.setdefault(self._where, []).append((self._text(target), offset))
        elif isinstance(target, ast.Tuple | ast.List):
            for element in target.elts:
                self._bind(element, offset)
        elif isinstance(target, ast.Starred):
            self._bind(target.value, offset)
        else:
            self.walk(target)

    # --- definitions

    def _see_FunctionDef(self, node: Function) -> None:
        self._define(node.name, "function", node)
        outer = self._enter(node)
        self._depth += 1
        self._parameters(node.args)
        self._body(node.body)
        self._where, self._depth = outer

    _see_AsyncFunctionDef = _see_FunctionDef

    def _see_ClassDef(self, node: ast.ClassDef) -> None:
        self._define(node.name, "class", node)
        outer = self._enter(node)
        self._body(node.body)
        self._where, self._depth = outer

    def _enter(self, node: Function | ast.ClassDef) -> tuple[str, int]:
        outer = self._where, self._depth
        self._where = f"{self._where}.{node.name}" if self._where else node.name
        return outer

    def _parameters(self, node: ast.arguments) -> None:
        plain = [*node.posonlyargs, *node.args]
        defaults: list[ast.expr | None] = [*[None] * (len(plain) - len(node.defaults)), *node.defaults]
        pairs = [
            *zip(plain, defaults, strict=True),
            (node.vararg, None),
            *zip(node.kwonlyargs, node.kw_defaults, strict=True),
            (node.kwarg, None),
        ]
        for parameter, default in pairs:
            if parameter is None:
                continue
            if word := _WORD.match(self._content, self._lines[parameter.lineno - 1] + parameter.col_offset):
                self._bindings.setdefault(self._where, []).append((word[0].decode(), word.end()))
            self._labelled(parameter.arg, default)

    def _see_Lambda(self, node: ast.Lambda) -> None:
        self.walk(node.body)

    def _labelled(self, label: str, value: ast.expr | None) -> None:
        outer, self._label = self._label, label
        self.walk(value)
        self._label = outer

    # --- statements

    def _body(self, body: Sequence[ast.stmt]) -> None:
        """The statements of a block. One that shares the line of its head cannot be taken apart."""
        if self._depth and body and _INDENT.search(self._content, 0, self._first(body[0])):
            groups = [[body[0]]]  # the statements that semicolons join are one
            for node in body[1:]:
                if _SEMICOLON.fullmatch(self._content, self._end(groups[-1][-1]), self._first(node)):
                    groups[-1].append(node)
                else:
                    groups.append([node])
            self._blocks.append(Block(self._where, tuple(map(self._statement, groups))))
        self.walk(*body)

    def _first(self, node: ast.stmt) -> int:
        """Where a statement begins, with its decorators."""
        decorators: Sequence[ast.expr] = getattr(node, "decorator_list", ())
        return self._content.rfind(b"@", 0, self._start(decorators[0])) if decorators else self._start(node)

    def _statement(self, group: Sequence[ast.stmt]) -> Statement:
        start, end, content = self._first(group[0]), self._end(group[-1]), self._content
        line = 1 + max(content.rfind(b"\n", 0, start), content.rfind(b"\r", 0, start))
        line_end = _LINE_END.search(content, end)
        role: Role = ""
        match group:
            case [ast.Return() | ast.Raise() | ast.Break() | ast.Continue()]:
                role = "jump"
            case [ast.Pass()]:
                role = "pass"
            case [ast.Expr(value=value)] if _is_string(value):
                role = "docstring"
        return Statement(line, line_end.end() if line_end else len(content), self._slice(start, end), role)

    def _see_Assign(self, node: ast.Assign) -> None:
        match node.targets:
            case [ast.Name() as target]:
                self._constant(target, node, node.value)
            case _:
                self.walk(node.value)
        for each in node.targets:
            self._bind(each, self._end(node))

    def _see_AnnAssign(self, node: ast.AnnAssign) -> None:
        if isinstance(node.target, ast.Name) and node.value is not None:
            self._constant(node.target, node, node.value)
        else:
            self.walk(node.value)
        self._bind(node.target, self._end(node))

    def _constant(self, target: ast.Name, node: ast.stmt, value: ast.expr) -> None:
        name = self._text(target)
        if not self._depth:
            self._define(name, "constant", node)
            self._labelled(name, value)
        else:
            direct = _is_number(value) or isinstance(value, ast.UnaryOp)
            self._labelled(name if direct else "", value)

    def _see_AugAssign(self, node: ast.AugAssign) -> None:
        if not isinstance(node.target, ast.Name):
            self.walk(node.target)
        self._site("operator", *self._gap(node.target, node.value).operator)
        self.walk(node.value)

    def _see_For(self, node: Loop) -> None:
        self.walk(node.iter)
        self._bind(node.target, self._end(node.target))
        self._body(node.body)
        self._body(node.orelse)

    _see_AsyncFor = _see_For

    def _see_comprehension(self, node: ast.comprehension) -> None:
        self.walk(node.iter)
        for each in node.ifs:
            self._test(each)

    def _see_With(self, node: ast.With | ast.AsyncWith) -> None:
        for item in node.items:
            self.walk(item.context_expr)
            if item.optional_vars:
                self._bind(item.optional_vars, self._end(item.optional_vars))
        self._body(node.body)

    _see_AsyncWith = _see_With

    def _see_Try(self, node: ast.Try) -> None:
        self._body(node.body)
        self.walk(*node.handlers)
        self._body(node.orelse)
        self._body(node.finalbody)

    _see_TryStar = _see_Try

    def _see_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        self.walk(node.type)
        if node.type and node.name and (found := _AS.match(self._content, self._end(node.type))):
            self._bindings.setdefault(self._where, []).append((node.name, found.end()))
        self._body(node.body)

    def _see_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.walk(node.value)
        self._bind(node.target, self._end(node))

    def _see_match_case(self, node: ast.match_case) -> None:
        self._test(node.guard)
        self._body(node.body)

    def _see_Import(self, node: ast.Import) -> None:
        names = (each.asname or each.name for each in node.names)
        self._modules.update(name for name in names if "." not in name)

    def _see_Expr(self, node: ast.Expr) -> None:
        if not _is_string(node.value):
            self.walk(node.value)

    def _skip(self, node: ast.AST) -> None:
        """What no edit improves, or what an older Python does not tell the place of: the parts of an f-string."""

    _see_ImportFrom = _see_Global = _see_Nonlocal = _see_Delete = _see_TypeAlias = _see_JoinedStr = _skip

    # --- conditions

    def _test(self, node: ast.expr | None) -> None:
        if node is None:
            return
        parts: tuple[str, ...] = ()
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            parts = (self._operand(node.operand, self._end(node.operand) < self._end(node)),)
        self._site("condition", *self._range(node), parts=parts)
        self.walk(node)

    def _see_If(self, node: ast.If) -> None:
        branch: ast.If | None = node
        while branch:
            self._test(branch.test)
            self._body(branch.body)
            otherwise, branch = branch.orelse, None
            match otherwise:
                case [ast.If() as nested] if self._content.startswith(b"elif", self._start(nested)):
                    branch = nested
                case _:
                    self._body(otherwise)

    def _see_While(self, node: ast.While) -> None:
        self._test(node.test)
        self._body(node.body)
        self._body(node.orelse)

    def _see_IfExp(self, node: ast.IfExp) -> None:
        self.walk(node.body)
        self._test(node.test)
        self.walk(node.orelse)

    # --- expressions

    def _see_Constant(self, node: ast.Constant) -> None:
        if _is_number(node):
            self._site("number", *self._range(node), label=self._label)
        elif isinstance(node.value, bool) or (_is_string(node) and _STRING.fullmatch(self._text(node))):
            self._site("literal", *self._range(node))
        elif node.value is None:
            self._site("name", *self._range(node))

    def _see_UnaryOp(self, node: ast.UnaryOp) -> None:
        between = self._content[self._start(node) + 1 : self._start(node.operand)]
        simple = isinstance(node.op, ast.USub) and not between.strip(b" \t\f\r\n\\")  # as good as one token
        if simple and _is_number(node.operand) and self._end(node.operand) == self._end(node):
            self._site("number", *self._range(node), label=self._label)
        else:
            self.walk(node.operand)

    def _see_Name(self, node: ast.Name) -> None:
        self._site("name", *self._range(node))

    def _see_Attribute(self, node: ast.Attribute) -> None:
        self.walk(node.value)

    def _see_Dict(self, node: ast.Dict) -> None:
        for pair in zip(node.keys, node.values, strict=True):
            self.walk(*pair)

    def _see_Call(self, node: ast.Call) -> None:
        arguments: list[ast.expr | ast.keyword] = [*node.args, *node.keywords]
        if isinstance(node.func, ast.Attribute):  # a module's function, not a method, which belongs to its object
            is_function = isinstance(node.func.value, ast.Name) and node.func.value.id in self._modules
        else:
            is_function = isinstance(node.func, ast.Name)
        if is_function:
            plain = not any(isinstance(each, ast.Starred | ast.keyword) for each in arguments)
            self._site("call", *self._range(node.func), label=str(len(arguments)) if plain else "")
        else:
            self.walk(node.func)
        self.walk(*sorted(arguments, key=lambda each: (each.lineno, each.col_offset)))

    def _see_Subscript(self, node: ast.Subscript) -> None:
        self.walk(node.value)
        outer, self._in_index = self._in_index, True
        self.walk(node.slice)
        self._in_index = outer

    def _see_BoolOp(self, node: ast.BoolOp) -> None:
        start, end = self._range(node)
        gaps = [self._gap(left, right) for left, right in zip(node.values, node.values[1:], strict=False)]
        ends = [*(gap.end for gap in gaps), end]
        for gap, right, stop in reversed(list(zip(gaps, node.values[1:], ends[1:], strict=True))):
            self._site("operator", *gap.operator)
            first = gap is gaps[0]
            left = self._operand(node.values[0], self._start(node.values[0]) > start) if first else ""
            parts = (left or self._slice(start, gap.end), self._operand(right, gap.opens))
            self._site("binary", start, stop, parts=parts)
        self.walk(*node.values)

    def _see_Compare(self, node: ast.Compare) -> None:
        self.walk(node.left)
        left = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            self._site("operator", *self._gap(left, right).operator)
            if isinstance(operator, _ORDERS):
                self._term(right)
            self.walk(right)
            left = right

    def _see_BinOp(self, node: ast.BinOp) -> None:
        gap = self._gap(node.left, node.right)
        operands = ((node.left, self._start(node.left) > self._start(node)), (node.right, gap.opens))
        self._site("operator", *gap.operator)
        self._site("binary", *self._range(node), parts=tuple(self._operand(*each) for each in operands))
        if isinstance(node.op, _ARITHMETIC) and not _is_sequence(node.left):
            for each, in_parentheses in operands:
                self._term(each, tight=not in_parentheses)
            if node not in self._operands:
                self._term(node)
        self.walk(node.left, node.right)

    def _term(self, node: ast.expr, *, tight: bool = False) -> None:
        self._operands.add(node)
        if not self._in_index and isinstance(node, _ATOMS):
            parts = (self._operand(node, isinstance(node, ast.BinOp)),)
            self._site("term", *self._range(node), label="tight" if tight else "", parts=parts)


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def _is_string(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)


def _is_sequence(node: ast.expr) -> bool:
    return _is_string(node) or isinstance(node, ast.JoinedStr | ast.List | ast.Tuple | ast.ListComp)
