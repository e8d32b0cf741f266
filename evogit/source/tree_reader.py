"""Reads the syntax tree of a program in any language: where there are numbers, operators, statements, definitions.

Grammars call their nodes differently, but what an edit needs looks alike in most languages: an operator stands between
two operands, a name before an assignment, statements on lines of their own. So shapes are looked at, names of nodes
only as far as they are common. What is taken for real numbers (by declarations, literals and calls) may grow by terms.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from evogit.source.syntax_parts import (
    NUMBER_SUFFIX,
    Block,
    Definition,
    DefinitionKind,
    Kind,
    Role,
    Site,
    Source,
    Statement,
)

if TYPE_CHECKING:
    from tree_sitter import Node

DEEPEST = 120
"""Nodes inside one another that are walked, as of Python."""

DEEPEST_REAL = 8
"""How deep in an expression it is looked for real numbers."""

LONGEST = 1000
"""Bytes of an expression that is edited as a whole, and of a name."""

_ARITHMETIC = frozenset(("+", "-", "*", "/", "%", "**"))
_LOGICAL = frozenset(("&&", "||", "and", "or", "&", "|", "^", "<<", ">>"))
_OTHERS = ("+=", "-=", "*=", "/=", "<", "<=", ">", ">=", "==", "!=", "===", "!==", "..", "..=")
_OPERATORS = _ARITHMETIC | _LOGICAL | frozenset(_OTHERS)
_ASSIGNS = frozenset(("=", ":=", "<-"))
_BOOLEANS = frozenset(("true", "false", "TRUE", "FALSE"))

_INTEGER = r"0[xX][0-9a-fA-F_]+|[1-9][\d_]*|0"
_FLOAT = r"\d[\d_]*\.\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+"
_NUMBER = re.compile(rf"(-?(?:(?P<float>{_FLOAT})|{_INTEGER}))(?:{NUMBER_SUFFIX.pattern.decode()})?")
_NUMERIC = re.compile(r"number|integer|int_literal|float|real_literal|decimal|numeric|preproc_arg")
"""Types of the nodes that may be a number."""

_FUNCTION = re.compile(
    r"(?:[a-z]+_)*(?:function|method|constructor|lambda|closure|func|procedure|subroutine)"
    r"(?:_(?:definition|declaration|item|literal|expression|statement))?|arrow_function"
)
_BLOCK = re.compile(
    r"block|statement_block|compound_statement|statement_list|statements|body_statement|braced_expression"
    r"|constructor_body|then|do"
)
_JUMP = re.compile(r"return|break|continue|throw|goto|raise|yield|exit")
_BINDING = re.compile(r"declaration|definition|let|_item|_spec|import|use_|label")
_IDENTIFIER = re.compile(r"(?:simple_|field_|property_)?identifier|name|constant|variable_name")
_DECLARATORS = ("init_declarator", "reference_declarator", "variable_declarator")
_REAL_TYPES = ("double", "float", "f32", "f64", "float32", "float64", "Double", "Float", "Float64", "number", "real")
_REAL_CALLS = ("sqrt", "exp", "log", "pow", "sin", "cos", "tan", "atan", "atan2", "hypot", "fabs", "floor", "ceil")
_INFERRED = ("auto", "var", "let")
_REST = re.compile(rb"[ \t]*;?[ \t]*(?:(?://|#|--)[^\r\n]*)?(?:\r\n|\r|\n|\Z)")
"""What may follow a statement that has its lines to itself."""


class Float(NamedTuple):
    """A float of a named constant: which of the constant's floats it is, and the bytes that it takes without suffix."""

    name: str
    place: int
    start: int
    end: int
    value: float


class _Around(NamedTuple):
    """What is known of a node from those around it."""

    where: str = ""
    """The function that it stands in."""
    inside: bool = False
    """Whether it stands in one, be it without a name."""
    label: str = ""
    """The name that its value is given to."""
    places: Iterator[int] = iter(())
    """Numbers the floats of that name."""
    typed: bool = False
    """Whether the node above says of which type it is."""
    operand: bool = False
    """Whether the node above binds it tightly, so that it needs parentheses when it grows."""
    depth: int = 0


class TreeReader:
    """Walks a tree once, in the order of the text, and notes what can be edited. It is for one program."""

    def __init__(self, content: bytes, language: str) -> None:
        self.floats: list[Float] = []
        self._content = content
        self._language = language
        self._definitions: list[Definition] = []
        self._sites: dict[Kind, list[Site]] = {}
        self._blocks: list[Block] = []
        self._reals: dict[str, dict[str, int]] = {}
        self._real_calls = set(_REAL_CALLS)

    def source(self) -> Source:
        """All that was noted; bindings are of real numbers alone."""
        return Source(
            content=self._content,
            definitions=tuple(self._definitions),
            sites={kind: tuple(sites) for kind, sites in self._sites.items()},
            blocks=tuple(self._blocks),
            bindings={where: tuple(names.items()) for where, names in self._reals.items()},
            language=self._language,
        )

    def walk(self, root: Node) -> None:
        """Note everything below a node but what its grammar does not understand."""
        todo = [(root, _Around())]
        while todo:
            node, around = todo.pop()
            if not node.child_count:
                self._leaf(node, around)
            elif not node.is_error and around.depth < DEEPEST and not self._negative(node, around):
                todo += reversed(self._inner(node, around))

    def _inner(self, node: Node, around: _Around) -> list[tuple[Node, _Around]]:
        """The children of a node, with what holds for each."""
        children = node.children
        inner = self._entered(node, around)
        if inner.inside and _BLOCK.fullmatch(node.type):
            self._block(children, inner.where)
        if self._operation(node, children, around):
            inner = inner._replace(operand=True)
        return self._bound(node, children, inner) or [(child, inner) for child in children]

    # --- helpers

    def _text(self, node: Node) -> str:
        return self._content[node.start_byte : node.end_byte].decode(errors="replace")

    def _site(self, kind: Kind, start: int, end: int, around: _Around, label: str = "", *parts: str) -> None:
        text = self._content[start:end].decode(errors="replace")
        self._sites.setdefault(kind, []).append(Site(kind, start, end, text, around.where, label, parts))

    def _sign(self, node: Node) -> str:
        """What an operator is, if this is one: its type, in most grammars."""
        return self._text(node) if node.type == "operator" else node.type

    # --- literals

    def _leaf(self, node: Node, around: _Around) -> None:
        if node.type in _BOOLEANS:
            self._site("literal", node.start_byte, node.end_byte, around)
        elif node.is_named and _NUMERIC.search(node.type):
            self._number(node, around)

    def _negative(self, node: Node, around: _Around) -> bool:
        """Whether this is a number with its sign; notes it."""
        if node.child_count != 2 or not _is_number(node):
            return False
        sign, digits = node.children
        if sign.end_byte != digits.start_byte or self._text(sign) != "-":
            return False
        self._number(node, around)
        return True

    def _number(self, node: Node, around: _Around) -> None:
        text = self._text(node)
        start = node.start_byte + len(text) - len(text.lstrip())
        found = _NUMBER.fullmatch(text.strip())
        if found is None or self._is_member(start):
            return
        end = start + len(found[1])
        self._site("number", start, end, around, around.label)
        if found["float"] and around.label and not around.inside:
            self.floats.append(Float(around.label, next(around.places), start, end, float(found[1])))

    def _is_member(self, start: int) -> bool:
        """Whether a number is the name of a member, as in `pair.0`."""
        before = self._content[max(0, start - 2) : start]
        return before.endswith(b".") and before != b".."

    # --- real numbers

    def _is_real(self, node: Node, where: str, depth: int = 0) -> bool:
        """Whether an expression gives a real number, as far as its text tells."""
        amount = node.child_count
        if not amount and _NUMERIC.search(node.type):
            found = _NUMBER.fullmatch(self._text(node))
            return found is not None and found["float"] is not None
        if not amount:
            names = (self._reals.get(where, ()), self._reals.get("", ()))
            return _IDENTIFIER.fullmatch(node.type) is not None and any(self._text(node) in each for each in names)
        if depth > DEEPEST_REAL or amount > 3:
            return False
        children = node.children
        if "call" in node.type:
            return re.split(r"::|\.", self._text(children[0])[-LONGEST:])[-1] in self._real_calls
        if amount == 3 and (self._sign(children[1]) in _ARITHMETIC or children[0].type == "("):
            return any(self._is_real(child, where, depth + 1) for child in children)
        return (amount == 1 or self._text(children[0]) == "-") and self._is_real(children[-1], where, depth + 1)

    def _declared(self, node: Node, where: str) -> None:
        """Take in the real variables that a node declares with their type."""
        for child in node.children:
            for name in child.children if child.type in _DECLARATORS else [child]:
                if _IDENTIFIER.fullmatch(name.type) and not name.child_count:
                    self._reals.setdefault(where, {}).setdefault(self._text(name), node.end_byte)

    # --- definitions

    def _entered(self, node: Node, around: _Around) -> _Around:
        """What holds for the children of a node."""
        kind = node.child_by_field_name("type")
        typed = self._text(kind).strip(": ") if kind else ""
        inner = around._replace(typed=typed not in ("", *_INFERRED), operand=False, depth=around.depth + 1)
        if not _is_function(node):
            if typed in _REAL_TYPES:
                self._declared(node, around.where)
            return inner
        fields = (node.child_by_field_name(field) for field in ("name", "declarator"))
        direct = (child for child in node.children if _IDENTIFIER.fullmatch(child.type))
        found = _identifier([*filter(None, fields), *direct])
        name = self._text(found) if found else ""
        if typed in _REAL_TYPES:
            self._real_calls.add(name)
        if name:
            self._define(name, "function", node, around)
        return inner._replace(where=name or around.where, inside=True, label="", typed=False)

    def _define(self, name: str, kind: DefinitionKind, node: Node, around: _Around) -> None:
        if not around.label:  # what stands in a constant's value is a part of that
            text = self._content[node.start_byte : node.end_byte]
            self._definitions.append(Definition(name, kind, node.start_byte, node.end_byte, text, around.inside))

    def _bound(self, node: Node, children: Sequence[Node], around: _Around) -> list[tuple[Node, _Around]]:
        """The children of a node that gives a value to a name, with what holds for each; empty for other nodes."""
        at = next((n for n, child in enumerate(children) if self._sign(child) in _ASSIGNS), -1)
        at = 0 if at < 0 and node.type == "init_declarator" else at
        is_macro = node.type == "preproc_def"
        before = children if is_macro else children[: at + 1]
        if (target := _identifier(before)) is None:
            return []
        name = self._named(target, before)
        values = [child for child in children[at + 1 :] if child.is_named]
        if not around.typed and len(values) == 1 and self._is_real(values[0], around.where):
            self._reals.setdefault(around.where, {}).setdefault(name, node.end_byte)
        if not around.inside and not is_macro:
            self._define(name, "constant", node, around)
        named = not around.inside or (len(values) == 1 and _is_number(values[0]))
        valued = around._replace(label=name if named else "", places=count())
        return [(child, around if n <= at else valued) for n, child in enumerate(children)]

    def _named(self, target: Node, children: Sequence[Node]) -> str:
        """What a value is called: the identifier, or with all that stands before it if it is a member of something."""
        whole = next(child for child in children if child.start_byte <= target.start_byte < child.end_byte)
        text = self._text(whole)
        return text if len(text) <= LONGEST and re.fullmatch(r"\w+(?:\.\w+)+", text) else self._text(target)

    # --- operators

    def _operation(self, node: Node, children: Sequence[Node], around: _Around) -> bool:
        """Whether this is an operator between two operands; notes what can be edited."""
        if len(children) != 3 or (sign := self._sign(children[1])) not in _OPERATORS:
            return False
        left, middle, right = children
        self._site("operator", middle.start_byte, middle.end_byte, around)
        start, end = node.start_byte, node.end_byte
        if (sign in _ARITHMETIC or sign in _LOGICAL) and end - start <= LONGEST:
            self._site("binary", start, end, around, "", self._text(left), self._text(right))
            if sign in _ARITHMETIC and self._is_real(node, around.where):
                self._site("term", start, end, around, "tight" if around.operand else "", f"({self._text(node)})")
        for each in (left, right) if sign in _ARITHMETIC else ():
            if _IDENTIFIER.fullmatch(each.type) and self._is_real(each, around.where):
                self._site("term", each.start_byte, each.end_byte, around, "tight", self._text(each))
                self._site("name", each.start_byte, each.end_byte, around)
        return True

    # --- statements

    def _block(self, children: Sequence[Node], where: str) -> None:
        lined = [found for child in children if child.is_named and (found := self._statement(child))]
        if any(each.text.endswith(";") for each in lined):  # what lacks one is the block's value
            lined = [each if each.text.endswith((";", "}")) else replace(each, role="jump") for each in lined]
        if lined:
            self._blocks.append(Block(where, tuple(lined)))

    def _statement(self, node: Node) -> Statement | None:
        """A statement that has its lines to itself; None for others, comments, and lists of statements."""
        start = _line_start(self._content, node)
        end = _REST.match(self._content, node.end_byte)
        if "comment" in node.type or _BLOCK.fullmatch(node.type) or node.has_error or end is None:
            return None
        if self._content[start : node.start_byte].strip():
            return None
        semicolon = ";" if end[0].lstrip().startswith(b";") else ""
        return Statement(start, end.end(), self._text(node) + semicolon, _role(node))


def top_parts(root: Node, content: bytes) -> list[tuple[str, int]]:
    """Name and end of each node below a root, as whole lines; those that share a line are one."""
    found: list[tuple[str, int]] = []
    for node in root.children:
        if not node.is_named or "comment" in node.type:
            continue
        last = max(node.start_byte, node.end_byte - 1)  # some nodes hold the end of their line
        end = content.find(b"\n", last) + 1 or len(content)
        if found and _line_start(content, node) < found[-1][1]:
            found[-1] = found[-1][0], end
        else:
            name = _identifier([node])
            found.append((name.text.decode(errors="replace") if name and name.text else node.type, end))
    return found


def _line_start(content: bytes, node: Node) -> int:
    return 1 + max(content.rfind(mark, 0, node.start_byte) for mark in (b"\n", b"\r"))


def _identifier(nodes: Sequence[Node]) -> Node | None:
    """The first identifier in these nodes that is not a type's."""
    todo = list(reversed(nodes))
    while todo:
        node = todo.pop()
        if _IDENTIFIER.fullmatch(node.type) and node.is_named and not node.child_count:
            return node
        todo += reversed(node.children)
    return None


def _is_function(node: Node) -> bool:
    """Whether a node is a function with its body, not a call or a type of one."""
    if not node.is_named or not _FUNCTION.fullmatch(node.type):
        return False
    bodies = (_BLOCK.fullmatch(child.type) or child.type == "function_body" for child in node.children)
    return node.child_by_field_name("body") is not None or any(bodies)


def _is_number(node: Node) -> bool:
    """Whether this is the place of a number, or of one with a sign."""
    digits = node.children[1] if node.child_count == 2 else node
    return not digits.child_count and _NUMERIC.search(digits.type) is not None


def _role(node: Node) -> Role:
    types = [node.type, *(child.type for child in node.children[:1])]
    if any(map(_JUMP.match, types)):
        return "jump"
    return "binding" if _BINDING.search(node.type) else ""
