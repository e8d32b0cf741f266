"""Walks the syntax tree of a module and notes its parts."""

from __future__ import annotations

import re
from collections.abc import Mapping

import libcst as cst
from libcst.metadata import ByteSpanPositionProvider, CodeSpan, MetadataWrapper

from evogit.source.parts import Block, Definition, DefinitionKind, Kind, Role, Site, Source, Statement

_ARITHMETIC = (cst.Add, cst.Subtract, cst.Multiply, cst.Divide, cst.FloorDivide, cst.Modulo, cst.Power)
_ATOMS = (cst.Name, cst.Attribute, cst.Call, cst.Subscript)
_STRINGS = (cst.SimpleString, cst.FormattedString, cst.ConcatenatedString)
_SEQUENCES = (*_STRINGS, cst.List, cst.Tuple, cst.ListComp)
_NUMBERS = (cst.Integer, cst.Float)
_JUMPS = (cst.Return, cst.Raise, cst.Break, cst.Continue)
_LINE_END = re.compile(rb"\r\n|\r|\n|\Z")


def collect(content: bytes, module: cst.Module) -> Source:
    """Note everything that can be edited in `module`, which was parsed from `content`."""
    collector = _Collector(content, MetadataWrapper(module, unsafe_skip_copy=True).resolve(ByteSpanPositionProvider))
    collector.walk(module)
    return collector.source()


class _Collector:
    """Walks a tree once and notes what can be edited. A `_see_X` method replaces the default, which is to go deeper."""

    def __init__(self, content: bytes, spans: Mapping[cst.CSTNode, CodeSpan]) -> None:
        self._content = content
        self._spans = spans
        self._definitions: list[Definition] = []
        self._sites: dict[Kind, list[Site]] = {}
        self._blocks: list[Block] = []
        self._bindings: dict[str, list[tuple[str, int]]] = {}
        self._modules: set[str] = set()
        self._operands: set[cst.CSTNode] = set()
        self._where = ""
        self._depth = 0  # of functions
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

    def walk(self, *nodes: cst.CSTNode | None) -> None:
        for node in nodes:
            if node is None or isinstance(node, cst.BaseParenthesizableWhitespace):
                continue
            see = getattr(self, f"_see_{type(node).__name__}", None)
            if see is not None:
                see(node)
            else:
                self.walk(*node.children)

    # --- helpers

    def _range(self, node: cst.CSTNode) -> tuple[int, int]:
        span = self._spans[node]
        return span.start, span.start + span.length

    def _text(self, node: cst.CSTNode) -> str:
        start, end = self._range(node)
        return self._content[start:end].decode()

    def _operand(self, node: cst.BaseExpression) -> str:
        return f"({self._text(node)})" if node.lpar else self._text(node)

    def _site(self, kind: Kind, node: cst.CSTNode, *, label: str = "", parts: tuple[str, ...] = ()) -> None:
        start, end = self._range(node)
        site = Site(kind, start, end, self._text(node), self._where, label, parts)
        self._sites.setdefault(kind, []).append(site)

    def _define(self, name: str, kind: DefinitionKind, node: cst.CSTNode) -> None:
        start, end = self._range(node)
        qualified = f"{self._where}.{name}" if self._where else name
        local = self._depth > 0
        self._definitions.append(Definition(qualified, kind, start, end, self._content[start:end], local))

    def _bind(self, target: cst.CSTNode, offset: int) -> None:
        if isinstance(target, cst.Name):
            self._bindings.setdefault(self._where, []).append((target.value, offset))
        elif isinstance(target, cst.Tuple | cst.List):
            for element in target.elements:
                self._bind(element.value, offset)
        else:
            self.walk(target)

    def _bind_after(self, target: cst.CSTNode) -> None:
        self._bind(target, self._range(target)[1])

    # --- definitions

    def _see_FunctionDef(self, node: cst.FunctionDef) -> None:
        self._define(node.name.value, "function", node)
        self._enter(node, function=True)

    def _see_ClassDef(self, node: cst.ClassDef) -> None:
        self._define(node.name.value, "class", node)
        self._enter(node, function=False)

    def _enter(self, node: cst.FunctionDef | cst.ClassDef, *, function: bool) -> None:
        outer = self._where, self._depth
        self._where = f"{self._where}.{node.name.value}" if self._where else node.name.value
        self._depth += function
        if isinstance(node, cst.FunctionDef):
            self.walk(node.params)
        self.walk(node.body)
        self._where, self._depth = outer

    def _see_Param(self, node: cst.Param) -> None:
        self._bind_after(node.name)
        self._labelled(node.name.value, node.default)

    def _see_Lambda(self, node: cst.Lambda) -> None:
        self.walk(node.body)

    def _labelled(self, label: str, value: cst.CSTNode | None) -> None:
        outer, self._label = self._label, label
        self.walk(value)
        self._label = outer

    # --- statements

    def _see_IndentedBlock(self, node: cst.IndentedBlock) -> None:
        if self._depth:
            statements = tuple(self._statement(each) for each in node.body)
            self._blocks.append(Block(self._where, statements))
        self.walk(*node.body)

    def _statement(self, node: cst.BaseStatement) -> Statement:
        decorators = node.decorators if isinstance(node, cst.FunctionDef | cst.ClassDef) else ()
        start, end = self._range(node)
        if decorators:
            start = self._range(decorators[0])[0]
        text = self._content[start:end].decode()
        content = self._content
        start = 1 + max(content.rfind(b"\n", 0, start), content.rfind(b"\r", 0, start))
        line_end = _LINE_END.search(content, end)
        return Statement(start, line_end.end() if line_end else len(content), text, _role(node))

    def _see_Assign(self, node: cst.Assign) -> None:
        target = node.targets[0].target
        if len(node.targets) == 1 and isinstance(target, cst.Name):
            self._constant(target, node)
        else:
            self.walk(node.value)
        for each in node.targets:
            self._bind(each.target, self._range(node)[1])

    def _see_AnnAssign(self, node: cst.AnnAssign) -> None:
        if isinstance(node.target, cst.Name) and node.value is not None:
            self._constant(node.target, node)
        else:
            self.walk(node.value)
        self._bind(node.target, self._range(node)[1])

    def _constant(self, target: cst.Name, node: cst.Assign | cst.AnnAssign) -> None:
        if not self._depth:
            self._define(target.value, "constant", node)
            self._labelled(target.value, node.value)
        else:
            direct = isinstance(node.value, (*_NUMBERS, cst.UnaryOperation))
            self._labelled(target.value if direct else "", node.value)

    def _see_AugAssign(self, node: cst.AugAssign) -> None:
        if not isinstance(node.target, cst.Name):
            self.walk(node.target)
        self._site("operator", node.operator)
        self.walk(node.value)

    def _see_For(self, node: cst.For) -> None:
        self.walk(node.iter)
        self._bind_after(node.target)
        self.walk(node.body, node.orelse)

    def _see_CompFor(self, node: cst.CompFor) -> None:
        self.walk(node.iter, *node.ifs, node.inner_for_in)

    def _see_AsName(self, node: cst.AsName) -> None:
        self._bind_after(node.name)

    def _see_NamedExpr(self, node: cst.NamedExpr) -> None:
        self.walk(node.value)
        self._bind(node.target, self._range(node)[1])

    def _see_MatchCase(self, node: cst.MatchCase) -> None:
        self._test(node.guard)
        self.walk(node.body)

    def _see_Import(self, node: cst.Import) -> None:
        names = (each.asname.name if each.asname else each.name for each in node.names)
        self._modules.update(name.value for name in names if isinstance(name, cst.Name))

    def _see_Expr(self, node: cst.Expr) -> None:
        if not isinstance(node.value, cst.SimpleString | cst.ConcatenatedString):
            self.walk(node.value)

    def _skip(self, node: cst.CSTNode) -> None:
        """What no edit improves."""

    _see_ImportFrom = _see_Annotation = _see_Decorator = _see_Global = _see_Nonlocal = _see_Del = _skip
    _see_TypeAlias = _see_ConcatenatedString = _skip

    # --- conditions

    def _test(self, node: cst.BaseExpression | None) -> None:
        if node is None:
            return
        inner = node.expression if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not) else None
        self._site("condition", node, parts=(self._operand(inner),) if inner else ())
        self.walk(node)

    def _see_If(self, node: cst.If) -> None:
        self._test(node.test)
        self.walk(node.body, node.orelse)

    def _see_While(self, node: cst.While) -> None:
        self._test(node.test)
        self.walk(node.body, node.orelse)

    def _see_IfExp(self, node: cst.IfExp) -> None:
        self.walk(node.body)
        self._test(node.test)
        self.walk(node.orelse)

    def _see_CompIf(self, node: cst.CompIf) -> None:
        self._test(node.test)

    # --- expressions

    def _see_Integer(self, node: cst.Integer) -> None:
        self._site("number", node, label=self._label)

    def _see_Float(self, node: cst.Float) -> None:
        self._site("number", node, label=self._label)

    def _see_UnaryOperation(self, node: cst.UnaryOperation) -> None:
        if _is_negative_number(node):
            self._site("number", node, label=self._label)
        else:
            self.walk(node.expression)

    def _see_SimpleString(self, node: cst.SimpleString) -> None:
        self._site("literal", node)

    def _see_FormattedStringExpression(self, node: cst.FormattedStringExpression) -> None:
        self.walk(node.expression)

    def _see_Name(self, node: cst.Name) -> None:
        self._site("literal" if node.value in ("True", "False") else "name", node)

    def _see_Attribute(self, node: cst.Attribute) -> None:
        self.walk(node.value)

    def _see_Arg(self, node: cst.Arg) -> None:
        self.walk(node.value)

    def _see_Call(self, node: cst.Call) -> None:
        if self._is_plain_function(node.func):
            plain = not any(each.star or each.keyword for each in node.args)
            self._site("call", node.func, label=str(len(node.args)) if plain else "")
        else:
            self.walk(node.func)
        self.walk(*node.args)

    def _is_plain_function(self, func: cst.BaseExpression) -> bool:
        """Whether it is `name` or `module.name`: not a method, which belongs to its object."""
        if isinstance(func, cst.Attribute):
            return isinstance(func.value, cst.Name) and func.value.value in self._modules
        return isinstance(func, cst.Name)

    def _see_SubscriptElement(self, node: cst.SubscriptElement) -> None:
        outer, self._in_index = self._in_index, True
        self.walk(node.slice)
        self._in_index = outer

    def _see_BooleanOperation(self, node: cst.BooleanOperation) -> None:
        self._site("operator", node.operator)
        self._site("binary", node, parts=(self._operand(node.left), self._operand(node.right)))
        self.walk(node.left, node.right)

    def _see_Comparison(self, node: cst.Comparison) -> None:
        self.walk(node.left)
        for each in node.comparisons:
            self._site("operator", each.operator)
            if isinstance(each.operator, cst.LessThan | cst.LessThanEqual | cst.GreaterThan | cst.GreaterThanEqual):
                self._term(each.comparator)
            self.walk(each.comparator)

    def _see_BinaryOperation(self, node: cst.BinaryOperation) -> None:
        self._site("operator", node.operator)
        self._site("binary", node, parts=(self._operand(node.left), self._operand(node.right)))
        if isinstance(node.operator, _ARITHMETIC) and not isinstance(node.left, _SEQUENCES):
            for each in (node.left, node.right):
                self._term(each, tight=not each.lpar)
            if node not in self._operands:
                self._term(node)
        self.walk(node.left, node.right)

    def _term(self, node: cst.BaseExpression, *, tight: bool = False) -> None:
        self._operands.add(node)
        if not self._in_index and isinstance(node, (*_ATOMS, cst.BinaryOperation)):
            compound = isinstance(node, cst.BinaryOperation)
            parts = (f"({self._text(node)})" if compound else self._text(node),)
            self._site("term", node, label="tight" if tight else "", parts=parts)


def _is_negative_number(node: cst.UnaryOperation) -> bool:
    """Whether it is as good as one token: nothing but white space between the sign and the digits."""
    sign, number = node.operator, node.expression
    simple = isinstance(sign, cst.Minus) and isinstance(sign.whitespace_after, cst.SimpleWhitespace)
    return simple and isinstance(number, _NUMBERS) and not number.lpar


def _role(node: cst.BaseStatement) -> Role:
    small = node.body[0] if isinstance(node, cst.SimpleStatementLine) and len(node.body) == 1 else None
    if isinstance(small, _JUMPS):
        return "jump"
    if isinstance(small, cst.Pass):
        return "pass"
    if isinstance(small, cst.Expr) and isinstance(small.value, cst.SimpleString | cst.ConcatenatedString):
        return "docstring"
    return ""
