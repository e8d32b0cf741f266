"""A program's structure: its definitions, the pieces at its top, and the places where a typed edit can be made.

A Python module is parsed once into plain spans of its text; edits then replace spans, so that everything outside of
them keeps its bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

MAX_SOURCE_BYTES = 64 * 1024
"""Bytes of a module that is taken apart: parsing takes about 1 ms for 3 kB, and the engine waits for it."""

DefinitionKind = Literal["function", "class", "constant"]

Role = Literal["", "jump", "pass", "docstring"]  # why a statement is not edited like others

Kind = Literal["number", "literal", "operator", "name", "call", "condition", "term", "binary"]
"""The kind of a site: a `term` is an arithmetic expression, a `binary` one has two operands."""


class Definition(Struct, frozen=True):
    """A function, class or constant by its qualified name; `start` and `end` are byte offsets of `text`.

    A function's text begins at `def` or `async def`: its decorators stay outside.
    """

    name: str
    kind: DefinitionKind
    start: int
    end: int
    text: bytes
    local: bool  # whether it is inside a function


class Site(Struct, frozen=True):
    """A place for one kind of edit: bytes `start` to `end` of the module, inside the function `where` ("": outside).

    `label` is the constant's name of a number, the number of arguments of a call, or "tight" for an expression that
    needs parentheses when it grows. `parts` are the texts of the operands.
    """

    kind: Kind
    start: int
    end: int
    text: str
    where: str
    label: str = ""
    parts: tuple[str, ...] = ()


class Statement(Struct, frozen=True):
    """A statement of a function as whole lines from `start` to `end`; `text` is without indent and line end."""

    start: int
    end: int
    text: str
    role: Role


class Block(Struct, frozen=True):
    """The statements that follow one another in the function `where`."""

    where: str
    statements: tuple[Statement, ...]


class Source(Struct, frozen=True):
    """A parsed module. `bindings` maps a function (or "") to its names and the offsets from where they are bound."""

    content: bytes
    definitions: tuple[Definition, ...]
    sites: Mapping[Kind, tuple[Site, ...]]
    blocks: tuple[Block, ...]
    bindings: Mapping[str, tuple[tuple[str, int], ...]]
