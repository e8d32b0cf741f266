"""Programs in other languages than Python, read by tree-sitter if the extra `languages` is installed.

Version 1 of tree-sitter-language-pack fetches grammars over the network when they are first used, so that only older
ones, which bring them all along, are taken. Nothing of it is imported before a file needs it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from evogit.source import MAX_SOURCE_BYTES

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

EXTRA = "pip install 'evogit[languages]'"  # the command that installs the grammars

GRAMMARS: Mapping[str, str] = {
    ending: grammar
    for grammar, endings in {
        "c": ("c",),
        "cpp": ("cc", "cpp", "cxx", "c++", "h", "hh", "hpp", "hxx", "ipp"),
        "csharp": ("cs",),
        "cuda": ("cu", "cuh"),
        "d": ("d",),
        "dart": ("dart",),
        "elixir": ("ex", "exs"),
        "fortran": ("f90", "f95", "f03", "f08"),
        "glsl": ("glsl", "vert", "frag", "comp"),
        "go": ("go",),
        "groovy": ("groovy",),
        "java": ("java",),
        "javascript": ("js", "cjs", "mjs", "jsx"),
        "julia": ("jl",),
        "kotlin": ("kt", "kts"),
        "lua": ("lua",),
        "luau": ("luau",),
        "nim": ("nim",),
        "objc": ("mm",),
        "ocaml": ("ml",),
        "odin": ("odin",),
        "pascal": ("pas", "pp"),
        "perl": ("pl", "pm"),
        "php": ("php",),
        "r": ("r",),
        "ruby": ("rb",),
        "rust": ("rs",),
        "scala": ("scala", "sc"),
        "solidity": ("sol",),
        "swift": ("swift",),
        "tsx": ("tsx",),
        "typescript": ("ts", "cts", "mts"),
        "verilog": ("v", "sv"),
        "wgsl": ("wgsl",),
        "zig": ("zig",),
    }.items()
    for ending in endings
}
"""File suffix in lower case -> grammar."""

_IDENTIFIER = re.compile(r"(?:simple_|field_|property_)?identifier|name|constant|variable_name")
"""Types of the nodes that name something."""


def grammar(path: str) -> str:
    """Return the grammar for a file of this name, "" for Python and unknown suffixes."""
    return GRAMMARS.get(path.rpartition(".")[2].lower(), "") if "." in path else ""


def is_read(path: str) -> bool:
    """Return whether a file of this name is read by an installed grammar."""
    return grammar(path) != "" and is_installed()


@cache
def is_installed() -> bool:
    """Return whether a version of the package that contains its grammars is installed."""
    spec = find_spec("tree_sitter_language_pack")
    folders = spec.submodule_search_locations if spec else None
    return any(Path(folder, "bindings").is_dir() for folder in folders or ())


def tops(language: str, content: bytes) -> list[tuple[str, int]]:
    """Return name and end of each definition at the top of a program, as whole lines; [] if it does not parse.

    Definitions that share a line are one.
    """
    parser = _parser(language) if len(content) <= MAX_SOURCE_BYTES else None
    root = parser.parse(content).root_node if parser else None
    if root is None or root.has_error:
        return []
    parts: list[tuple[str, int]] = []
    for node in root.children:
        if not node.is_named or "comment" in node.type:
            continue
        last = max(node.start_byte, node.end_byte - 1)  # some nodes include the end of their line
        end = content.find(b"\n", last) + 1 or len(content)
        line = 1 + max(content.rfind(mark, 0, node.start_byte) for mark in (b"\n", b"\r"))
        if parts and line < parts[-1][1]:
            parts[-1] = parts[-1][0], end
        else:
            name = _identifier([node])
            parts.append((name.text.decode(errors="replace") if name and name.text else node.type, end))
    return parts


def _identifier(nodes: Sequence[Node]) -> Node | None:
    """Return the first identifier in these nodes that is not a type's."""
    todo = list(reversed(nodes))
    while todo:
        node = todo.pop()
        if _IDENTIFIER.fullmatch(node.type) and node.is_named and not node.child_count:
            return node
        todo += reversed(node.children)
    return None


@cache
def _parser(language: str) -> Parser | None:
    """Return the parser of a language, None if its grammar is missing or was built for another tree-sitter."""
    from tree_sitter_language_pack import get_parser

    try:
        parser: Parser = get_parser(language)  # type: ignore[arg-type,unused-ignore]  # one of the package's own names
    except (LookupError, ValueError):
        return None
    return parser
