"""Tells candidates that differ only in what cannot matter, so that none is evaluated that is known in effect."""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from msgspec import Struct, field

from evogit.history import History
from evogit.repository import Repository, TreeEntry
from evogit.source import MAX_SOURCE_BYTES
from evogit.source.definitions import piece_syntax
from evogit.source.pieces import MOST_SOURCE_BYTES, REMEMBERED, split

REFLECTIVE = re.compile(
    rb"__doc__|__file__|__annotations__|__code__|co_\w+|f_locals|\b(?:locals|vars|dir|globals|eval|exec|compile|open|"
    rb"read_text|read_bytes|help|inspect|dis|ast|linecache|traceback|tokenize|doctest|_getframe|lineno|getsource)\b|"
    rb"coding[:=][ \t]*(?!(?i:utf-?8)\b)\w"
)
"""Words in a file that may look at its own text, names or lines, or say how to read it; there every byte matters."""

UNCHANGED = hashlib.sha256(b"").hexdigest()[:16]
"""The fingerprint of the seed."""

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SCOPES = (*FUNCTIONS, ast.Lambda, ast.ClassDef, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
NAMING = (
    *(*FUNCTIONS, ast.ClassDef, ast.arg, ast.alias, ast.Global, ast.Nonlocal, ast.ExceptHandler),
    *(ast.MatchAs, ast.MatchStar, ast.MatchMapping),
)


class Fingerprints(Struct, frozen=True):
    """Fingerprints of trees as changes to the seed of a run: equal ones mean that the trees do the same."""

    repository: Repository
    history: History
    _known: dict[str, str] = field(default_factory=dict)
    """Id of a blob -> what it is in effect."""

    def fingerprint(self, tree: str) -> str:
        """16 hex digits; the same for trees that differ from the seed in the same way, as far as it matters."""
        seed = self.history.phylogeny[self.history.seed or ""].tree
        return hashlib.sha256("\n".join(sorted(self._changes(seed, tree))).encode()).hexdigest()[:16]

    def _changes(self, seed: str, tree: str) -> Iterator[str]:
        """One line for each file that differs in effect."""
        room = MOST_SOURCE_BYTES
        for old, new in self.repository.trees.differences(seed, tree):
            size = self.repository.trees.size(new.blob) if new and _is_module(new) else 0
            room -= size if size <= MAX_SOURCE_BYTES else 0
            look = self._effect if room >= 0 else _content
            after = look(new) if new else "gone"
            if old is None or look(old) != after:
                yield f"{after} {(new or old or TreeEntry('', 0, '')).path!r}"

    def _effect(self, entry: TreeEntry) -> str:
        """The mode, and what the content comes down to."""
        if not _is_module(entry):
            return _content(entry)
        if entry.blob not in self._known:
            trees = self.repository.trees
            small = trees.size(entry.blob) <= MAX_SOURCE_BYTES
            self._known[entry.blob] = (essence(trees.blob(entry.blob)) if small else "") or entry.blob
        return f"{entry.mode:o} {self._known[entry.blob]}"


def _is_module(entry: TreeEntry) -> bool:
    return entry.path.endswith(".py") and entry.is_file


def _content(entry: TreeEntry) -> str:
    """What a file is, byte by byte."""
    return f"{entry.mode:o} {entry.blob}"


def essence(content: bytes) -> str:
    """A digest of what a Python module does, empty where that cannot be told from its syntax.

    Layout, comments, docstrings, statements that are mere constants, `pass`, how a literal is written, and the names of
    functions' locals do not matter. The values of literals do, and all names that others may use.
    """
    if REFLECTIVE.search(content):
        return ""
    found = list[str]()
    for text in split("module.py", content).values():
        digests = _statements(text)
        if digests is None:
            return ""
        found += digests
    return hashlib.sha256("\n".join(found).encode()).hexdigest()[:32]


@lru_cache(maxsize=REMEMBERED)
def _statements(text: str) -> Sequence[str] | None:
    """A digest of what each statement at the top of a piece does; None where it cannot be parsed.

    Cached, since a candidate shares most of its pieces with its parent.
    """
    try:
        return [_digest(statement) for statement in piece_syntax(text).body if not _idle(statement)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _digest(statement: ast.stmt) -> str:
    writer = _Writer()
    writer.write(statement)
    return hashlib.sha256("\n".join(writer.words).encode(errors="surrogatepass")).hexdigest()


class _Writer(Struct):
    """Writes a syntax tree down, field by field, so that different trees give different words."""

    words: list[str] = field(default_factory=list)
    _locals: dict[str, str] | None = None
    """Name -> what stands for it, in the outermost function that is being written; None outside."""
    _met: int = 0
    """How many of them were met."""

    def write(self, node: ast.AST) -> None:
        if isinstance(node, FUNCTIONS) and self._locals is None:
            self._locals = dict.fromkeys(renamable(node), "")
            self._met = 0
            self._fields(node)
            self._locals = None
        elif isinstance(node, ast.Name) and self._locals and node.id in self._locals:
            if not self._locals[node.id]:
                self._locals[node.id] = f"local {self._met}"
                self._met += 1
            self.words.append(self._locals[node.id])
        else:
            self._fields(node)

    def _fields(self, node: ast.AST) -> None:
        words = self.words
        words.append(type(node).__name__)
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, list):
                words.append("[")
                for item in value:
                    if not isinstance(item, ast.AST):
                        words.append(repr(item))
                    elif not _idle(item):
                        self.write(item)
                words.append("]")
            elif not isinstance(value, ast.AST):
                if name != "kind":  # of a literal: u"" is ""
                    words.append(repr(value))
            elif not isinstance(value, ast.expr_context):
                self.write(value)


def _idle(node: ast.AST) -> bool:
    """Whether a statement does nothing: docstrings, `...` and `pass`."""
    return isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))


def renamable(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """Names of a function's locals that cannot be seen or meant from outside, so that they could be any other.

    Only names that are bound by plain assignments, loops and the like in the function itself, and are nothing else
    anywhere in it: no parameter (also of functions inside), import, exception, definition, or attribute of a class.
    """
    bound, fixed = set[str](), set[str]()
    _bindings(function.body, bound, fixed)
    for around in (function.args, *function.decorator_list, *filter(None, [function.returns])):
        for node in ast.walk(around):  # what is said here is meant outside
            fixed.update([node.id] if isinstance(node, ast.Name) else [node.arg] if isinstance(node, ast.arg) else [])
    return {name for name in bound - fixed if not name.startswith("__")}


def _bindings(nodes: list[ast.stmt], bound: set[str], fixed: set[str]) -> None:
    """Sort names into those that a function's own statements bind, and those that are something else in it too."""
    todo: list[tuple[ast.AST, bool, bool]] = [(node, True, False) for node in nodes]
    while todo:
        node, own, in_class = todo.pop()
        if type(node) is ast.Name:
            if type(node.ctx) is not ast.Load and (own or in_class):
                (bound if own else fixed).add(node.id)
            continue
        if isinstance(node, NAMING):
            fixed.update(_named(node))
        if isinstance(node, SCOPES):
            own, in_class = False, isinstance(node, ast.ClassDef)
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, list):
                todo += [(item, own, in_class) for item in value if isinstance(item, ast.AST)]
            elif isinstance(value, ast.AST):
                todo.append((value, own, in_class))


def _named(node: ast.AST) -> Iterator[str]:
    """The names that a node binds or declares, other than by assignment."""
    match node:
        case ast.arg(arg=name):
            yield name
        case ast.alias(name=name, asname=alias):
            yield alias or name.split(".")[0]
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            yield from names
        case ast.MatchMapping(rest=str(name)):
            yield name
        case object(name=str(name)):
            yield name
