"""What a Python module is made of: its definitions, and the places where a typed edit can be made.

The only package that imports libcst. A module is parsed once into plain spans of its text; edits then replace spans, so
that everything outside of them keeps its bytes.
"""

from __future__ import annotations

import ast
import functools

from evogit.source.definitions import compiles, merge_definitions, syntax
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
    "syntax",
]


MOST_BRACKETS = 8
"""Brackets that are opened in a `case`: libcst takes twice the time for each one that stands in another."""


@functools.lru_cache(maxsize=64)
def parse(content: bytes) -> Source | None:
    """Parse a module; None for what is not UTF-8, is not Python, or is nested too deeply, as patterns are soon.

    Cached by content, because parsing costs a hundred times more than an edit.
    """
    import libcst as cst  # 0.2 s, which who only compares and merges need not wait for

    from evogit.source.collector import collect

    if not compiles(content):  # asked first, since some nesting overflows the stack of libcst's parser and kills us
        return None
    try:
        text = content.decode()
        if b"case" in content and _most_brackets(content) > MOST_BRACKETS:
            return None
        module = cst.parse_module(text)
        if module.code != text:  # a byte order mark is dropped, which would move every span
            return None
        return collect(content, module)
    except (UnicodeDecodeError, cst.ParserSyntaxError, RecursionError, KeyError):
        return None  # KeyError: what libcst makes of a RecursionError in its span provider


def _most_brackets(content: bytes) -> int:
    """How many brackets are opened from a `case` to the line of what it does, at most."""
    lines, most = content.splitlines(), 0
    for match in (node for node in ast.walk(syntax(content)) if isinstance(node, ast.Match)):
        start = match.subject.end_lineno or 0
        for case in match.cases:
            header = b"".join(lines[start : case.body[0].lineno])
            most = max(most, sum(map(header.count, (b"(", b"[", b"{"))))
            start = case.body[-1].end_lineno or 0
    return most
