"""What a program is made of: its definitions, and the places where a typed edit can be made.

A module is parsed once into plain spans of its text; edits then replace spans, so that everything outside of them keeps
its bytes. Python is read from its own syntax tree and from the text between its nodes, other languages by tree-sitter
where that is installed (`languages.py`).
"""

from __future__ import annotations

import functools

from evogit.source.collector import collect
from evogit.source.definitions import compiles, merge_definitions, syntax
from evogit.source.syntax_parts import MAX_SOURCE_BYTES, Block, Definition, Kind, Site, Source, Statement
from evogit.source.value_kinds import fits, is_number

__all__ = [
    "MAX_SOURCE_BYTES",
    "Block",
    "Definition",
    "Kind",
    "Site",
    "Source",
    "Statement",
    "compiles",
    "fits",
    "is_number",
    "merge_definitions",
    "parse",
    "syntax",
]


@functools.lru_cache(maxsize=64)
def parse(content: bytes) -> Source | None:
    """Parse a module; None for what is large, is not UTF-8, is not Python, or is nested too deeply.

    Cached by content, because parsing costs ten times more than an edit.
    """
    if len(content) > MAX_SOURCE_BYTES or not compiles(content):
        return None
    try:
        return collect(content, syntax(content.decode("utf-8-sig")))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
