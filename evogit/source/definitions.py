"""Merges two versions of a Python module by whole definitions, where lines alone would tear them apart.

Only the lines at which a statement begins and ends are needed, so the standard library's parser does. It takes
quadratic time for some sources, so that this file is a program, too, which imports nothing of ours: its input is three
lengths in a line and the versions, its output the conflicts in a line and the merged module, or nothing.
"""

from __future__ import annotations

import ast
import re
import resource
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import NamedTuple

SECONDS, BYTES = 5, 1 << 30
"""CPU time and address space that the program allows itself; a module of a thousand lines takes 0.02 s."""

Key = tuple[str, int]
"""What a statement is recognised by: a definition's name, the text of one that the base has, else its kind; and which
one of that name it is in its body."""

LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
"""What the parser counts as a line, with its end."""


class _Part(NamedTuple):
    """A statement with the comments and empty lines above it. `members` are the parts of a class, first its head."""

    text: str
    members: tuple[tuple[Key, _Part], ...] = ()


Parts = dict[Key, _Part]

_HEAD: Key = ("class", 0)
"""No statement is called like that."""

_UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
"""What the parser raises; text that is not UTF-8 is a `ValueError`."""


@lru_cache(maxsize=256)
def compiles(content: bytes) -> bool:
    """Whether Python accepts a module. Remembered, as a child that is asked about becomes a parent.

    Of one with `finally` clauses only the syntax is looked at: the compiler writes each of them down for every way out
    of it, which takes exponential time where they are nested.
    """
    try:
        if b"finally" in content:
            syntax(content)
        else:
            with _quietly():
                compile(content, "<candidate>", "exec", dont_inherit=True)
    except _UNREADABLE:
        return False
    return True


def syntax(content: bytes | str) -> ast.Module:
    """The syntax tree of a module, without a word about it on the terminal; raises what `ast.parse` does."""
    with _quietly():
        return ast.parse(content)


@lru_cache(maxsize=8)
def piece_syntax(piece: str) -> ast.Module:
    """The same of a piece of a module, which several look into one after the other; the tree must not be changed."""
    return syntax(piece)


@contextmanager
def _quietly() -> Iterator[None]:
    """Keep what Python thinks of a candidate's invalid escapes and the like to ourselves."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def merge_definitions(base: bytes, fitter: bytes, other: bytes) -> tuple[bytes, int] | None:
    """The merged module, and for how many definitions the fitter's version was taken though both had changed it.

    A definition that one side changed, added or removed is as that side has it; of one that both changed (of a class:
    a member) the fitter's is taken whole. All stands where the fitter has it, what is new after what it followed.

    Returns:
        None where a version cannot be parsed or the result would not compile.
    """
    try:
        old = _ModuleReader(base)
        mine, its = (_ModuleReader(version, old.texts) for version in (fitter, other))
    except _UNREADABLE:
        return None
    merged, conflicts = _merge(old.parts, mine.parts, its.parts)
    result = "".join(part.text for part in merged.values()).encode()
    return (result, conflicts) if compiles(result) else None


class _ModuleReader:
    """Takes a module apart. `known` are the statements of the base, None for the base itself."""

    def __init__(self, content: bytes, known: frozenset[str] | None = None) -> None:
        text = content.decode()
        self._lines = LINE.findall(text)
        if self._lines and not self._lines[-1].endswith(("\r", "\n")):
            self._lines[-1] += "\n"
        self._known = known
        self._texts = set[str]()
        self.parts: Parts = dict(self._parts(syntax(text).body, 0, len(self._lines)))

    @property
    def texts(self) -> frozenset[str]:
        """All statements that define nothing."""
        return frozenset(self._texts)

    def _parts(self, body: Sequence[ast.stmt], start: int, end: int) -> Iterator[tuple[Key, _Part]]:
        """The statements of a body that takes the lines `start` to `end`; the last one takes what is left."""
        seen = Counter[str]()
        groups = statements(body)
        for group in groups:
            stop = end if group is groups[-1] else group[-1].end_lineno or end
            name = defined(group) or self._recognised(group)
            yield (name, seen[name]), self._part(group, start, stop)
            seen[name] += 1
            start = stop
        if start < end:
            yield ("", 0), _Part("".join(self._lines[start:end]))

    def _recognised(self, group: Sequence[ast.stmt]) -> str:
        text = "".join(self._lines[_first_line(group[0]) - 1 : group[-1].end_lineno]).strip()
        self._texts.add(text)
        plain = self._known is None or text in self._known or isinstance(group[0], ast.Import | ast.ImportFrom)
        return text if plain else f"<{type(group[0]).__name__}>"

    def _part(self, group: Sequence[ast.stmt], start: int, stop: int) -> _Part:
        text = "".join(self._lines[start:stop])
        match group:
            case [ast.ClassDef(body=[first, *_] as body) as definition] if _first_line(first) > definition.lineno:
                at = _first_line(first) - 1
                head = _Part("".join(self._lines[start:at]))
                return _Part(text, ((_HEAD, head), *self._parts(body, at, stop)))
        return _Part(text)


def statements(body: Sequence[ast.stmt]) -> list[list[ast.stmt]]:
    """Statements, those that share a line together."""
    groups: list[list[ast.stmt]] = []
    for statement in body:
        if groups and _first_line(statement) <= (groups[-1][-1].end_lineno or 0):
            groups[-1].append(statement)
        else:
            groups.append([statement])
    return groups


def _first_line(statement: ast.stmt) -> int:
    decorators: Sequence[ast.expr] = getattr(statement, "decorator_list", ())
    return min([statement.lineno, *(each.lineno for each in decorators)])


def defined(group: Sequence[ast.stmt]) -> str:
    """What a statement defines; empty where it is not a definition."""
    match group:
        case [ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() as definition]:
            return definition.name
        case [ast.Assign(targets=[ast.Name() as target])] | [ast.AnnAssign(target=ast.Name() as target)]:
            return target.id
    return ""


def _merge(base: Parts, fitter: Parts, other: Parts) -> tuple[Parts, int]:
    """The parts of a merged body in the fitter's order, and how many of them both sides had changed."""
    merged, conflicts = Parts(), 0
    for key in _order(fitter, other):
        part, count = _merge_part(base.get(key), fitter.get(key), other.get(key))
        conflicts += count
        if part is not None:
            merged[key] = part
    return merged, conflicts


def _merge_part(base: _Part | None, fitter: _Part | None, other: _Part | None) -> tuple[_Part | None, int]:
    for plain in (str, str.strip):  # empty lines around it count only where nothing else does
        old, mine, its = (plain(part.text) if part else None for part in (base, fitter, other))
        if mine == its or its == old:
            return fitter, 0
        if mine == old:
            return other, 0
    if base and fitter and other and fitter.members and other.members:
        members, count = _merge(dict(base.members), dict(fitter.members), dict(other.members))
        return _Part("".join(part.text for part in members.values()), tuple(members.items())), count
    return fitter, 1


def _order(fitter: Parts, other: Parts) -> list[Key]:
    """The fitter's order; what only the other one has comes after what it follows there."""
    after: dict[Key | None, list[Key]] = {}
    anchor: Key | None = None
    for key in other:
        if key in fitter:
            anchor = key
        else:
            after.setdefault(anchor, []).append(key)
    return [*after.get(None, ()), *(each for key in fitter for each in (key, *after.get(key, ())))]


def main() -> None:
    """Merge what stands on the standard input."""
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    sizes = map(int, sys.stdin.buffer.readline().split())
    base, fitter, other = (sys.stdin.buffer.read(size) for size in sizes)
    if found := merge_definitions(base, fitter, other):
        sys.stdout.buffer.write(b"%d\n%s" % (found[1], found[0]))


if __name__ == "__main__":
    main()
