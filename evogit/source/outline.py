"""What a text file is made of, whatever its language: definitions and the lines that they take, told by indentation.

No parser: it has to work for any language, for a file with conflicts or errors in it, and in time that grows with the
length alone, as the engine waits. A line that looks like a definition inside of a string is taken for one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from msgspec import Struct

LONGEST_HEAD = 300  # characters of a line that are looked at
MOST_LINES = 20_000  # lines of a file that are looked at, as others wait meanwhile
DEEPEST = 2  # how many definitions may stand around one that is told of

_CONTAINERS = "class|struct|trait|interface|impl|module|namespace|mod|object|enum"
_DEFINED = re.compile(
    rf"(?:[a-z_]+(?:\([a-z]+\))?\s+){{0,4}}(def|func|fn|function\*?|type|sub|proc|{_CONTAINERS})\b"
    r"(?:<[^>]{0,60}>)?\s+(?:\([^)]{0,60}\)\s*)?([A-Za-z_$][\w$]*)"
)
_CALLABLE = re.compile(r"(?:[A-Za-z_][\w:<>,*&\[\]]*\s+){0,5}[*&~]{0,2}([A-Za-z_$][\w$:]*)\s*\([^;]*\{\s*$")
_ASSIGNED = re.compile(r"(?:export\s+)?(?:const\s+|let\s+|var\s+|static\s+)?([A-Za-z_$][\w$]*)\s*(?::[^=]{1,80})?=[^=]")
_CONTROL = frozenset(
    ("if", "for", "while", "switch", "return", "else", "catch", "with", "elif", "do", "try", "case", "throw", "new")
)
_ABOVE = ("@", "# ", "#[", "//", "/*", "* ", "*/")
_CLOSING = (")", "]", "}", "{", "end")


class Part(Struct, frozen=True):
    """A definition: its name, its first line as it is, the lines it takes (counted from 1), how deep it stands."""

    name: str
    head: str
    first: int
    last: int
    depth: int

    @property
    def lines(self) -> int:
        """How many it takes, decorators and comments right above it included."""
        return self.last - self.first + 1


@lru_cache(maxsize=32)
def outline(text: str) -> tuple[Part, ...]:
    """The definitions of a file, in their order, those inside of a class or the like right after it.

    Of a long file those in its first `MOST_LINES`.
    """
    lines = text.split("\n", MOST_LINES)[:MOST_LINES]
    return tuple(sorted(_parts(lines), key=lambda part: (part.first, part.depth)))


@dataclass(slots=True)
class _Open:
    """A definition whose end was not met yet."""

    name: str
    head: str
    first: int
    indent: int
    container: bool
    depth: int

    def closed(self, last: int) -> Part:
        return Part(self.name, self.head, self.first, last, self.depth)


def _parts(lines: Sequence[str]) -> Iterator[Part]:
    stack: list[_Open] = []
    last = 0
    for number, line in enumerate(lines, 1):
        stripped = line.strip()
        if not stripped:
            continue
        indent = len(line) - len(line.lstrip())
        # a definition ends before a line that is not deeper and does not close it
        while stack and (indent, stripped.startswith(_CLOSING)) < (stack[-1].indent, True):
            yield stack.pop().closed(last)
        if not stack or (stack[-1].container and len(stack) <= DEEPEST):
            stack += _opened(lines, number, indent, len(stack))
        last = number
    while stack:
        yield stack.pop().closed(last)


def _opened(lines: Sequence[str], number: int, indent: int, depth: int) -> list[_Open]:
    """The definition that begins at a line, if one does."""
    head = lines[number - 1][:LONGEST_HEAD]
    line = head.lstrip()
    if found := _DEFINED.match(line):
        return [_Open(found[2], head, _first(lines, number, indent), indent, found[1] in _CONTAINERS.split("|"), depth)]
    braced = f"{line} {{" if "".join(lines[number : number + 1]).strip() == "{" else line
    found = _CALLABLE.match(braced) or (_ASSIGNED.match(line) if not depth and not indent else None)
    if not found or not _CONTROL.isdisjoint((line.split()[0].rstrip("("), found[1])):
        return []
    return [_Open(found[1].rpartition(":")[2], head, _first(lines, number, indent), indent, False, depth)]


def _first(lines: Sequence[str], number: int, indent: int) -> int:
    """Where the decorators and comments right above a line begin."""
    while number > 1 and _belongs_below(lines[number - 2], indent):
        number -= 1
    return number


def _belongs_below(line: str, indent: int) -> bool:
    stripped = line.lstrip()
    return stripped.startswith(_ABOVE) and len(line) - len(stripped) in (indent, indent + 1)
