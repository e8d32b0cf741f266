"""Line ends, final newline and indentation of a file: what was uniform stays so, whatever a program's editor does."""

from __future__ import annotations

import math
import re

_BINARY = re.compile(rb"[\0-\x08\x0e-\x1a\x1c-\x1f]")
_MAKEFILE = re.compile(r"(^|/)(GNU)?[Mm]akefile[^/]*$|\.mk$")
"""Paths of files in which tabs and spaces mean different things."""
_INDENT = re.compile(rb"^[ \t]+(?=\S)", re.MULTILINE)


def kept_uniform(path: str, old: bytes, new: bytes) -> bytes:
    """Return `new` with the line ends, the final newline and the kind of indentation that all of `old` has."""
    if not old or not new or _BINARY.search(old) or _BINARY.search(new):
        return new
    plain = _plain(new) if _MAKEFILE.search(path) else _indented_alike(_plain(old), _plain(new))
    end = old.endswith(b"\n")
    if plain.endswith(b"\n") != end:
        plain = plain + b"\n" if end else plain.rstrip(b"\n")
    model = old if b"\n" in old else new
    crlf, lines = model.count(b"\r\n"), model.count(b"\n")
    if crlf and crlf == lines:
        return plain.replace(b"\n", b"\r\n")
    return new if crlf else plain


def _plain(text: bytes) -> bytes:
    return text.replace(b"\r\n", b"\n")


def _indented_alike(old: bytes, new: bytes) -> bytes:
    """Return `new` indented by tabs alone as `old` is, or by its number of spaces, where each has one kind alone."""
    before, after = _INDENT.findall(old), _INDENT.findall(new)
    kinds = [{bytes({*indent}) for indent in indents} for indents in (before, after)]
    if kinds == [{b"\t"}, {b" "}]:
        unit = math.gcd(*map(len, after))
        return _INDENT.sub(lambda found: b"\t" * (len(found[0]) // unit), new) if unit > 1 else new
    if kinds == [{b" "}, {b"\t"}]:
        unit = math.gcd(*map(len, before))
        return _INDENT.sub(lambda found: b" " * (unit * len(found[0])), new) if unit > 1 else new
    return new
