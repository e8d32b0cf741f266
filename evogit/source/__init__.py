"""What a Python module is made of: its definitions, and the places where a typed edit can be made.

The only package that imports libcst. A module is parsed once into plain spans of its text; edits then replace spans, so
that everything outside of them keeps its bytes.
"""

from __future__ import annotations

import functools

import libcst as cst

from evogit.source.collector import collect
from evogit.source.definitions import compiles, merge_definitions
from evogit.source.kinds import fits, is_number
from evogit.source.parts import Block, Definition, Kind, Site, Source, Statement

__all__ = [
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
]


@functools.lru_cache(maxsize=64)
def parse(content: bytes) -> Source | None:
    """Parse a module; None for what is not UTF-8, is not Python, or is nested too deeply.

    Cached by content, because parsing costs a hundred times more than an edit.
    """
    if not compiles(content):  # asked first, since some nesting overflows the stack of libcst's parser and kills us
        return None
    try:
        text = content.decode()
        module = cst.parse_module(text)
        if module.code != text:  # a byte order mark is dropped, which would move every span
            return None
        return collect(content, module)
    except (UnicodeDecodeError, cst.ParserSyntaxError, RecursionError, KeyError):
        return None  # KeyError: what libcst makes of a RecursionError in its span provider
