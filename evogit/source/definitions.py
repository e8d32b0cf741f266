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
import textwrap
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import NamedTuple

SECONDS, BYTES = 1, 1 << 30
"""CPU time and address space that the program allows itself; a module of a thousand lines takes 0.02 s."""

Key = tuple[str, int]
"""What a statement is recognised by: a definition's name, the text of one that the base has, else its kind; and which
one of that name it is in its body."""

LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")  # what the parser counts as a line, with its end


class _Statement(NamedTuple):
    """A statement with the comments and empty lines above it, or the lines above the first one of a class's body."""

    text: str
    name: str = ""  # what it defines
    bare: str = ""  # the statement alone, where it defines nothing
    # what it is where only the base's text could tell it from others; an import is always told by its text
    kind: str = ""
    members: tuple[_Statement, ...] = ()  # of a class its head, and the statements of its body


class _Part(NamedTuple):
    """A statement of a version. `members` are the parts of a class, first its head."""

    text: str
    members: tuple[tuple[Key, _Part], ...] = ()


Parts = dict[Key, _Part]

_HEAD = "class"  # no statement is called like that

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


@lru_cache(maxsize=64)
def merge_definitions(base: bytes, fitter: bytes, other: bytes) -> tuple[bytes, int] | None:
    """The merged module, and for how many definitions the fitter's version was taken though both had changed it.

    A definition that one side changed, added or removed is as that side has it; of one that both changed (of a class:
    a member) the fitter's is taken whole. All stands where the fitter has it, what is new after what it followed.
    Remembered, as a merge is looked at before it is made.

    Returns:
        None where a version cannot be parsed or the result would not compile.
    """
    try:
        old, mine, its = map(_taken_apart, (base, fitter, other))
    except _UNREADABLE:
        return None
    known = frozenset(_bare(old))
    merged, conflicts = _merge(*(_parts(version, known) for version in (old, mine, its)))
    result = "".join(part.text for part in merged.values()).encode()
    return (result, conflicts) if compiles(result) else None


@lru_cache(maxsize=256)
def _taken_apart(content: bytes) -> tuple[_Statement, ...]:
    """The statements of a module, remembered, as a good one is merged with many; raises one of `_UNREADABLE`."""
    text = content.decode()
    lines = LINE.findall(text)
    if lines and not lines[-1].endswith(("\r", "\n")):
        lines[-1] += "\n"
    return tuple(_statements(lines, syntax(content).body, 0, len(lines)))


def _statements(lines: Sequence[str], body: Sequence[ast.stmt], start: int, end: int) -> Iterator[_Statement]:
    """The statements of a body that takes the lines `start` to `end`; the last one takes what is left."""
    groups = statements(body)
    for group in groups:
        stop = end if group is groups[-1] else group[-1].end_lineno or end
        text, name = "".join(lines[start:stop]), defined(group)
        if name:
            members: list[_Statement] = []  # of a class: its head and the statements of its body
            match group:
                case [ast.ClassDef(body=[first, *_] as inner) as definition] if _first_line(first) > definition.lineno:
                    at = _first_line(first) - 1
                    members = [_Statement("".join(lines[start:at]), _HEAD), *_statements(lines, inner, at, stop)]
            yield _Statement(text, name, members=tuple(members))
        else:
            bare = "".join(lines[_first_line(group[0]) - 1 : group[-1].end_lineno]).strip()
            kind = "" if isinstance(group[0], ast.Import | ast.ImportFrom) else f"<{type(group[0]).__name__}>"
            yield _Statement(text, bare=bare, kind=kind)
        start = stop
    if start < end:
        yield _Statement("".join(lines[start:end]))


def _bare(statements: Iterable[_Statement]) -> Iterator[str]:
    """All statements that define nothing."""
    for each in statements:
        if each.bare:
            yield each.bare
        yield from _bare(each.members)


def _parts(statements: Iterable[_Statement], known: frozenset[str]) -> Parts:
    """What `statements` are recognised by, where the base has the `known` ones that define nothing."""
    seen = Counter[str]()
    parts = Parts()
    for each in statements:
        name = each.name or (each.kind if each.kind and each.bare not in known else each.bare)
        members = tuple(_parts(each.members, known).items()) if each.members else ()
        parts[name, seen[name]] = _Part(each.text, members)
        seen[name] += 1
    return parts


_DEFINED = re.compile(rb"^[ \t]*(?:async[ \t]+def|def|class)[ \t]+([^\s(:\[]+)", re.MULTILINE)


@lru_cache(maxsize=256)
def repeated(content: bytes) -> frozenset[str]:
    """The functions and classes, as `Class.method`, that a module defines more than once in one body.

    None of what cannot be parsed. Most files have no name twice anywhere, and are not even parsed.
    """
    names = _DEFINED.findall(content)
    if len(set(names)) == len(names):
        return frozenset()
    try:
        bodies: list[tuple[str, Sequence[ast.stmt]]] = [("", syntax(content).body)]
    except _UNREADABLE:
        return frozenset()
    met = Counter[str]()
    for within, body in bodies:
        for each in body:
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                met[f"{within}{each.name}"] += 1
                bodies.append((f"{within}{each.name}.", each.body))
    return frozenset(name for name, count in met.items() if count > 1)


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
    if fitter == other:  # as most are
        return fitter, 0
    for plain in (str, str.strip, _effect):  # layout and comments count only where nothing else does
        old, mine, its = (plain(part.text) if part else None for part in (base, fitter, other))
        if mine == its or its == old:
            return fitter, 0
        if mine == old:
            return other, 0
    if base and fitter and other and fitter.members and other.members:
        members, count = _merge(dict(base.members), dict(fitter.members), dict(other.members))
        return _Part("".join(part.text for part in members.values()), tuple(members.items())), count
    return fitter, 1


@lru_cache(maxsize=1024)
def _effect(text: str) -> str:
    """What a statement comes down to without layout and comments; the text itself where it cannot be parsed."""
    try:
        return ast.dump(syntax(textwrap.dedent(text)))
    except _UNREADABLE:
        return text


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


def without_unnamed(merged: bytes, versions: Sequence[bytes], is_named: Callable[[str], bool]) -> bytes:
    """Return a merged module without the definitions that only one side added and that nothing names.

    `versions` are the base and both sides; `is_named` says whether another file names one.
    """
    try:
        base, *sides = map(definition_names, versions)
        mine, its = (side - base for side in sides)
        statements = _taken_apart(merged)
    except _UNREADABLE:
        return merged
    dead = _unnamed(statements, mine ^ its, is_named)
    result = "".join(each.text for number, each in enumerate(statements) if number not in dead).encode()
    return result if dead and compiles(result) else merged


def unnamed_lines(content: bytes, base: bytes, is_named: Callable[[str], bool]) -> dict[int, str]:
    """Return line, counted from 0 -> name, of the definitions that the base lacks and nothing names."""
    try:
        statements, names = _taken_apart(content), definition_names(content) - definition_names(base)
    except _UNREADABLE:
        return {}
    dead, lines, at = _unnamed(statements, names, is_named), dict[int, str](), 0
    for number, each in enumerate(statements):
        end = at + each.text.count("\n")
        lines |= dict.fromkeys(range(at, end) if number in dead else (), each.name)
        at = end
    return lines


def definition_names(content: bytes) -> frozenset[str]:
    """Return the names that a module defines at its top; raises what the parser does."""
    return frozenset(each.name for each in _taken_apart(content) if each.name)


def _unnamed(statements: Sequence[_Statement], names: frozenset[str], is_named: Callable[[str], bool]) -> set[int]:
    """The places of definitions with one of these names that no other statement names; of theirs in turn, too.

    What may have an effect of its own is none of them: what is decorated, derived, computed by a call, or private to
    Python; nor is the first statement, which may have the file's head.
    """
    words = [frozenset(re.findall(r"\w+", each.text)) for each in statements]
    open_ones = [number for number, each in enumerate(statements) if number and each.name in names and _is_idle(each)]
    dead, before = set[int](), -1
    while before < len(dead):
        before = len(dead)
        alive = [number for number in range(len(statements)) if number not in dead]
        for number in {*open_ones} - dead:
            name = statements[number].name
            if not any(name in words[other] for other in alive if other != number) and not is_named(name):
                dead.add(number)
    return dead


def _is_idle(definition: _Statement) -> bool:
    first = next((line for line in definition.text.splitlines() if line.strip() and line[0] != "#"), "")
    return not definition.name.startswith("__") and (
        first.startswith(("def ", "async def ")) or "(" not in definition.text
    )


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
